/* Values of CQL types, as records show them: one node of the plan's words for each type, with those of its parts.
 *
 * A cell that is not as cells of its type are is REFUSED. IS_NULL: the value is null, and nothing was written.
 * IS_EMPTY: a list without elements was written.
 */
#ifndef VALUES_H
#define VALUES_H

#include "numbers.h"

enum { IS_EMPTY = 2 };

typedef struct {
    const uint8_t *at;
    int32_t size; /* -1: null */
} cell;

typedef struct {
    const int32_t *words;
    const uint8_t *text;
    int avro;
} language;

enum {
    INTEGER, BOOLEAN, TEXT, ASCII, BLOB, UUID, INET, DATE, FLOAT, DOUBLE, VARINT, DECIMAL, DURATION,
    SEQUENCE,    /* element, whether null without elements */
    MAP,         /* key, value, whether null without entries */
    STRUCT,      /* whether null without fields, number of fields, then FIELD_WORDS each */
    VECTOR,      /* element, dimensions, size of an element or -1 */
    LIST_COLUMN, /* element: a list as the log has it, by time uuids */
};

/* Of a field: where its name stands in the text and how long it is, its node, whether null is an empty list. */
enum { FIELD_WORDS = 4 };

static int put_any(out *o, language l, int node, cell c);

/* The bare value of a cell that is not null. Whole numbers are the most frequent, and need least for themselves. */
static inline int put_value(out *o, language l, int node, cell c) {
    const int32_t *words = l.words + node;
    if (words[0] == INTEGER && c.size == words[1]) return put_integer(o, l.avro, read_signed(c.at, c.size));
    return put_any(o, l, node, c);
}

/* Integers of a size, dates of four bytes from the middle of their range. */
enum { FIRST_GREGORIAN_DAY = -141427 };

static int put_address(out *o, int avro, int strict, cell c) {
    char text[48], *to = text;
    const uint8_t *at = c.at;
    int part;
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    if (c.size == 16 && strict && !memcmp(at, mapped, 12)) {
        at += 12;
        c.size = 4;
    }
    if (c.size == 4) {
        for (part = 0; part < 4; part++) {
            if (part) *to++ = '.';
            to += digits_of(at[part], to);
        }
    } else if (c.size == 16) {
        for (part = 0; part < 16; part += 2) {
            char hex[4];
            int from = 0;
            hex_of(at + part, 2, hex);
            while (from < 3 && hex[from] == '0') from++;
            if (part) *to++ = ':';
            memcpy(to, hex + from, (size_t)(4 - from));
            to += 4 - from;
        }
    } else {
        return REFUSED;
    }
    return put_word(o, avro, text, (int)(to - text));
}

static int put_scalar(out *o, int avro, const int32_t *node, cell c) {
    switch (node[0]) {
    case INTEGER:
        if (c.size != node[1]) return REFUSED;
        return put_integer(o, avro, read_signed(c.at, c.size));
    case BOOLEAN:
        if (c.size != 1) return REFUSED;
        if (avro) return put_byte(o, *c.at != 0);
        return *c.at ? put(o, "true", 4) : put(o, "false", 5);
    case ASCII: {
        int32_t at;
        for (at = 0; at < c.size; at++)
            if (c.at[at] & 0x80) return REFUSED;
        return put_text(o, avro, c.at, c.size);
    }
    case TEXT:
        return put_text(o, avro, c.at, c.size);
    case BLOB:
        return put_bytes(o, avro, c.at, c.size);
    case UUID: {
        char text[36];
        if (c.size != 16) return REFUSED;
        uuid_of(c.at, text);
        return put_word(o, avro, text, 36);
    }
    case INET:
        return put_address(o, avro, node[1], c);
    case DATE: {
        int64_t days;
        if (c.size != 4) return REFUSED;
        days = (int64_t)read_big(c.at, 4) - 2147483648LL;
        if (node[1] && days < FIRST_GREGORIAN_DAY) return REFUSED;
        return put_integer(o, avro, days);
    }
    case FLOAT:
        return c.size == 4 ? put_float(o, avro, c.at) : REFUSED;
    case DOUBLE:
        return c.size == 8 ? put_double(o, avro, c.at) : REFUSED;
    case VARINT:
        return put_varint(o, avro, c.at, c.size);
    case DECIMAL:
        return put_decimal(o, avro, c.at, c.size);
    case DURATION:
        return put_duration(o, avro, c.at, c.size);
    default:
        return REFUSED;
    }
}

static inline int put_null(out *o, int avro) { return avro ? put_byte(o, 0) : put(o, "null", 4); }

/* The mark of an optional value that is there; JSON has none. */
static inline int put_mark(out *o, int avro) { return avro ? put_byte(o, 2) : DONE; }

/* A value that may be null, with its mark. Returns IS_NULL and IS_EMPTY as `put_value` does, with null written. */
static int put_optional(out *o, language l, int node, cell c) {
    int64_t before = o->used;
    int verdict;
    if (c.size >= 0) {
        TRY(put_mark(o, l.avro));
        verdict = put_value(o, l, node, c);
        if (verdict != IS_NULL) return verdict;
        o->used = before;
    }
    verdict = put_null(o, l.avro);
    return verdict ? verdict : IS_NULL;
}

/* The next cell of a collection: its length, then its bytes. */
static inline int next_cell(const uint8_t **at, const uint8_t *end, cell *found) {
    int64_t size;
    if (end - *at < 4) return REFUSED;
    size = read_signed(*at, 4);
    *at += 4;
    found->size = -1;
    if (size < 0) return DONE;
    if (end - *at < size) return REFUSED;
    found->at = *at;
    found->size = (int32_t)size;
    *at += size;
    return DONE;
}

/* The number of entries of a collection; how many cells each has. */
static int count_of(cell c, const uint8_t **at, int cells, int64_t *count) {
    if (c.size < 4) return REFUSED;
    *count = read_signed(c.at, 4);
    *at = c.at + 4;
    return *count < 0 || *count * cells * 4 > c.size - 4 ? REFUSED : DONE;
}

#define MADE(call)                          \
    do {                                    \
        int verdict_ = (call);              \
        if (verdict_ < 0) return verdict_;  \
    } while (0)

static int put_sequence(out *o, language l, const int32_t *node, cell c) {
    const uint8_t *at, *end = c.at + c.size;
    int64_t count, each;
    if (!c.size) return IS_NULL;
    TRY(count_of(c, &at, 1, &count));
    if (!count && node[2]) return at == end ? IS_NULL : REFUSED;
    if (!l.avro) TRY(put_byte(o, '['));
    else if (count) TRY(put_zigzag(o, count));
    for (each = 0; each < count; each++) {
        cell element;
        TRY(next_cell(&at, end, &element));
        if (each && !l.avro) TRY(put_byte(o, ','));
        MADE(put_optional(o, l, node[1], element));
    }
    if (at != end) return REFUSED;
    TRY(put_byte(o, l.avro ? 0 : ']'));
    return count ? DONE : IS_EMPTY;
}

static int later(const uint8_t *time, const uint8_t *other) {
    int at, difference;
    uint64_t a = (read_big(time + 6, 2) & 0xFFF) << 48 | read_big(time + 4, 2) << 32 | read_big(time, 4);
    uint64_t b = (read_big(other + 6, 2) & 0xFFF) << 48 | read_big(other + 4, 2) << 32 | read_big(other, 4);
    if (a != b) return a > b;
    for (at = 8; at < 16; at++) {
        difference = (int8_t)time[at] - (int8_t)other[at];
        if (difference) return difference > 0;
    }
    return 0;
}

static int put_list_column(out *o, language l, const int32_t *node, cell c) {
    const uint8_t *at, *end = c.at + c.size, *last = NULL;
    int64_t count, each;
    if (!c.size) return IS_NULL;
    TRY(count_of(c, &at, 2, &count));
    if (!count) return at == end ? IS_NULL : REFUSED;
    TRY(l.avro ? put_zigzag(o, count) : put_byte(o, '['));
    for (each = 0; each < count; each++) {
        cell key, element;
        TRY(next_cell(&at, end, &key));
        TRY(next_cell(&at, end, &element));
        /* Servers write them in order; what is not is for the plain way to sort. */
        if (key.size != 16 || (last && !later(key.at, last))) return REFUSED;
        last = key.at;
        if (each && !l.avro) TRY(put_byte(o, ','));
        MADE(put_optional(o, l, node[1], element));
    }
    if (at != end) return REFUSED;
    return put_byte(o, l.avro ? 0 : ']');
}

static int put_map(out *o, language l, const int32_t *node, cell c) {
    const uint8_t *at, *end = c.at + c.size;
    int64_t count, each;
    if (!c.size) return IS_NULL;
    TRY(count_of(c, &at, 2, &count));
    if (!count && node[3]) return at == end ? IS_NULL : REFUSED;
    if (!l.avro) TRY(put_byte(o, '['));
    else if (count) TRY(put_zigzag(o, count));
    for (each = 0; each < count; each++) {
        cell key, value;
        TRY(next_cell(&at, end, &key));
        TRY(next_cell(&at, end, &value));
        if (!l.avro) TRY(each ? put(o, ",{\"key\":", 8) : put(o, "{\"key\":", 7));
        MADE(put_optional(o, l, node[1], key));
        if (!l.avro) TRY(put(o, ",\"value\":", 9));
        MADE(put_optional(o, l, node[2], value));
        if (!l.avro) TRY(put_byte(o, '}'));
    }
    if (at != end) return REFUSED;
    TRY(put_byte(o, l.avro ? 0 : ']'));
    return count ? DONE : IS_EMPTY;
}

static int put_struct(out *o, language l, const int32_t *node, cell c) {
    const uint8_t *at = c.at, *end = c.at + c.size;
    const int32_t *field = node + 3;
    int each, something = 0;
    if (!c.size) return IS_NULL;
    if (!l.avro) TRY(put_byte(o, '{'));
    for (each = 0; each < node[2]; each++, field += FIELD_WORDS) {
        cell part = {NULL, -1};
        int verdict;
        if (at < end) TRY(next_cell(&at, end, &part));
        TRY(put(o, l.text + field[0], field[1]));
        if (part.size < 0 && field[3]) {
            TRY(l.avro ? put(o, "\2\0", 2) : put(o, "[]", 2));
            continue;
        }
        MADE(verdict = put_optional(o, l, field[2], part));
        something |= verdict == DONE;
    }
    if (at != end) return REFUSED;
    if (node[1] && !something) return IS_NULL;
    return l.avro ? DONE : put_byte(o, '}');
}

static int put_vector(out *o, language l, const int32_t *node, cell c) {
    int64_t at = 0;
    int each;
    if (!c.size) return IS_NULL;
    if (node[3] >= 0 && c.size != (int64_t)node[3] * node[2]) return REFUSED;
    TRY(l.avro ? put_zigzag(o, node[2]) : put_byte(o, '['));
    for (each = 0; each < node[2]; each++) {
        cell element = {c.at + at, node[3]};
        if (node[3] < 0) {
            uint64_t size;
            TRY(read_vint(c.at, c.size, &at, &size));
            if (size > (uint64_t)(c.size - at)) return REFUSED;
            element.at = c.at + at;
            element.size = (int32_t)size;
        }
        at += element.size;
        if (each && !l.avro) TRY(put_byte(o, ','));
        MADE(put_optional(o, l, node[1], element));
    }
    if (at != c.size) return REFUSED;
    return put_byte(o, l.avro ? 0 : ']');
}

static int put_any(out *o, language l, int node, cell c) {
    const int32_t *words = l.words + node;
    int64_t before = o->used;
    int verdict;
    switch (words[0]) {
    case SEQUENCE: verdict = put_sequence(o, l, words, c); break;
    case LIST_COLUMN: verdict = put_list_column(o, l, words, c); break;
    case MAP: verdict = put_map(o, l, words, c); break;
    case STRUCT: verdict = put_struct(o, l, words, c); break;
    case VECTOR: verdict = put_vector(o, l, words, c); break;
    default: return put_scalar(o, l.avro, words, c);
    }
    if (verdict == IS_NULL) o->used = before;
    return verdict;
}

#endif

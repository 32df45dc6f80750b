/* What is written: a buffer of a fixed size that says when it is full, and the texts of both languages in it.
 *
 * A value is written either as JSON text, as Jackson writes it, or in Avro's binary encoding (`avro`). Functions return
 * 0, or a verdict on the batch: REFUSED is for the plain way, FULL for a larger buffer. Nothing is ever half right:
 * whoever gets a verdict takes back what the batch has written so far.
 */
#ifndef OUT_H
#define OUT_H

#include "bytes.h"

enum { DONE = 0, IS_NULL = 1, REFUSED = -1, FULL = -2 };

typedef struct {
    uint8_t *start;
    int64_t used;
    int64_t size;
} out;

#define TRY(call)                       \
    do {                                \
        int verdict_ = (call);          \
        if (verdict_) return verdict_;  \
    } while (0)

static inline int put(out *o, const void *bytes, int64_t count) {
    if (o->size - o->used < count) return FULL;
    copy(o->start + o->used, bytes, count);
    o->used += count;
    return DONE;
}

static inline int put_byte(out *o, uint8_t byte) {
    if (o->used >= o->size) return FULL;
    o->start[o->used++] = byte;
    return DONE;
}

/* Avro's int and long: zigzag, then seven bits a byte, lowest first. */
static inline int put_zigzag(out *o, int64_t value) {
    uint64_t left = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    int count = (70 - __builtin_clzll(left | 1)) / 7;
    if (o->size - o->used < count) return FULL;
    for (; left >= 0x80; left >>= 7) o->start[o->used++] = (uint8_t)(left | 0x80);
    o->start[o->used++] = (uint8_t)left;
    return DONE;
}

static inline int put_integer(out *o, int avro, int64_t value) {
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int digits;
    if (avro) return put_zigzag(o, value);
    if (value < 0) TRY(put_byte(o, '-'));
    digits = count_digits(size);
    if (o->size - o->used < digits) return FULL;
    o->used += digits;
    write_digits(size, (char *)o->start + o->used);
    return DONE;
}

/* A number as it was written last, of those that mostly come again; without a size there was none. */
typedef struct {
    int64_t value;
    int32_t size;
    uint8_t text[20];
} known;

static inline int put_known(out *o, int avro, int64_t value, known *last) {
    if (avro) return put_zigzag(o, value);
    if (!last->size || last->value != value) {
        out text = {last->text, 0, sizeof last->text};
        TRY(put_integer(&text, 0, value));
        last->value = value;
        last->size = (int32_t)text.used;
    }
    return put(o, last->text, last->size);
}

/* A text that needs no escapes: digits, letters, signs. */
static inline int put_word(out *o, int avro, const char *text, int count) {
    if (avro) {
        TRY(put_zigzag(o, count));
        return put(o, text, count);
    }
    TRY(put_byte(o, '"'));
    TRY(put(o, text, count));
    return put_byte(o, '"');
}

/* The length of the character at `at`, or 0 if it is none: UTF-8 as Python's decoder takes it, so no surrogates, no
 * long forms, nothing behind U+10FFFF. */
static inline int utf8_length(const uint8_t *at, int64_t left) {
    uint8_t a = at[0];
    if (a < 0x80) return 1;
    if (a < 0xC2) return 0;
    if (a < 0xE0) return left >= 2 && (at[1] & 0xC0) == 0x80 ? 2 : 0;
    if (a < 0xF0) {
        if (left < 3 || (at[1] & 0xC0) != 0x80 || (at[2] & 0xC0) != 0x80) return 0;
        if (a == 0xE0 && at[1] < 0xA0) return 0;
        return a == 0xED && at[1] > 0x9F ? 0 : 3;
    }
    if (a > 0xF4 || left < 4) return 0;
    if ((at[1] & 0xC0) != 0x80 || (at[2] & 0xC0) != 0x80 || (at[3] & 0xC0) != 0x80) return 0;
    if (a == 0xF0 && at[1] < 0x90) return 0;
    return a == 0xF4 && at[1] > 0x8F ? 0 : 4;
}

static inline int put_code_unit(out *o, unsigned unit) {
    static const char hex[] = "0123456789ABCDEF";
    char text[6] = {'\\', 'u', hex[unit >> 12 & 15], hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15]};
    return put(o, text, 6);
}

static inline int put_escaped(out *o, uint8_t byte) {
    static const char shorts[] = "btn.fr"; /* for 8 to 13, of which 11 has none */
    char text[2] = {'\\', (char)byte};
    if (byte >= 0x20) return put(o, text, 2);
    if (byte < 8 || byte > 13 || byte == 11) return put_code_unit(o, byte);
    text[1] = shorts[byte - 8];
    return put(o, text, 2);
}

/* How many of eight bytes, the first one lowest, need no second look: ASCII without escapes. */
static inline int count_plain(uint64_t eight) {
    const uint64_t ones = 0x0101010101010101ULL, tops = 0x8080808080808080ULL;
    uint64_t quote = eight ^ (ones * '"'), slash = eight ^ (ones * '\\');
    uint64_t found = ((eight - ones * 0x20) | (quote - ones) | (slash - ones) | eight) & tops;
    return found ? __builtin_ctzll(found) >> 3 : 8; /* what borrows from those above it is found itself */
}

/* Text of a column. JSON leaves characters of the basic plane as they are, and writes others as two escapes. */
static int put_text(out *o, int avro, const uint8_t *text, int64_t count) {
    int64_t at = 0, from = 0;
    if (avro) {
        while (at < count) {
            int length = utf8_length(text + at, count - at);
            if (!length) return REFUSED;
            at += length;
        }
        TRY(put_zigzag(o, count));
        return put(o, text, count);
    }
    TRY(put_byte(o, '"'));
    while (at < count) {
        uint8_t byte;
        int length;
        if (count >= 8) {
            /* Of the last eight, what was seen is taken away: what takes its place at the end is not plain. */
            int64_t left = count - at;
            int plain = count_plain(left >= 8 ? read_text(text + at) : read_text(text + count - 8) >> 8 * (8 - left));
            at += plain;
            if (plain == 8 || at == count) continue;
        }
        byte = text[at];
        if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\') {
            at++;
            continue;
        }
        length = utf8_length(text + at, count - at);
        if (!length) return REFUSED;
        if (length == 2 || length == 3) {
            at += length;
            continue;
        }
        TRY(put(o, text + from, at - from));
        if (length == 1) {
            TRY(put_escaped(o, byte));
        } else {
            unsigned code = ((unsigned)(byte & 7) << 18 | (unsigned)(text[at + 1] & 63) << 12 |
                             (unsigned)(text[at + 2] & 63) << 6 | (unsigned)(text[at + 3] & 63)) - 0x10000;
            TRY(put_code_unit(o, 0xD800 | code >> 10));
            TRY(put_code_unit(o, 0xDC00 | (code & 0x3FF)));
        }
        at += length;
        from = at;
    }
    TRY(put(o, text + from, at - from));
    return put_byte(o, '"');
}

static int put_bytes(out *o, int avro, const uint8_t *raw, int64_t count) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int64_t at;
    uint8_t *to;
    if (avro) {
        TRY(put_zigzag(o, count));
        return put(o, raw, count);
    }
    if (o->size - o->used < (count + 2) / 3 * 4 + 2) return FULL;
    to = o->start + o->used;
    *to++ = '"';
    for (at = 0; at < count; at += 3) {
        int left = count - at > 2 ? 3 : (int)(count - at);
        unsigned three = (unsigned)raw[at] << 16 | (left > 1 ? (unsigned)raw[at + 1] << 8 : 0) |
                         (left > 2 ? (unsigned)raw[at + 2] : 0);
        *to++ = (uint8_t)alphabet[three >> 18];
        *to++ = (uint8_t)alphabet[three >> 12 & 63];
        *to++ = (uint8_t)(left > 1 ? alphabet[three >> 6 & 63] : '=');
        *to++ = (uint8_t)(left > 2 ? alphabet[three & 63] : '=');
    }
    *to++ = '"';
    o->used = to - o->start;
    return DONE;
}

static inline int hex_of(const uint8_t *raw, int count, char *text) {
    static const char hex[] = "0123456789abcdef";
    int at;
    for (at = 0; at < count; at++) {
        text[2 * at] = hex[raw[at] >> 4];
        text[2 * at + 1] = hex[raw[at] & 15];
    }
    return 2 * count;
}

/* Sixteen bytes as 36 characters. */
static inline void uuid_of(const uint8_t *raw, char *text) {
    char flat[32];
    hex_of(raw, 16, flat);
    memcpy(text, flat, 8);
    text[8] = '-';
    memcpy(text + 9, flat + 8, 4);
    text[13] = '-';
    memcpy(text + 14, flat + 12, 4);
    text[18] = '-';
    memcpy(text + 19, flat + 16, 4);
    text[23] = '-';
    memcpy(text + 24, flat + 20, 12);
}

#endif

/* From rows of a log to the keys and values of their records, without an object of Python's for any of them.
 *
 * A table's plan (connector/native/plan.py) says what stands where: `words` are numbers, `text` is what the records have
 * in common. What is not as usual is refused, a batch at a time, and made the plain way, which is the reference.
 */
#include "headers.h"
#include "rows.h"

enum {
    LITERAL,     /* where in the text, length */
    SOURCE_MS, SOURCE_US, SOURCE_NS, /* whether optional */
    NOW_MS, NOW_US, NOW_NS,          /* whether optional; the last two null where an image stands in `before` */
    STREAM_ID, TIME_ID, SEQUENCE_NUMBER, OPERATION, TTL,
    KIND,
    BEFORE, AFTER, KEY, /* struct */
    BEFORE_OR_KEY, AFTER_OR_KEY, /* struct, whether there are keys */
};
enum { STEP_WORDS = 3 };

/* Of the fields of a struct. A CELL tells a null that was written; the others are deltas of collections. */
enum { BARE, CELL, SET_DELTA, LIST_DELTA, MAP_DELTA, FIELDS_DELTA };
enum { WITHOUT_CELL = 8, FORM = 7 };
/* Name's place, name's length, form, node, second node, places of value, flag and removed elements, whether it is of the
 * key. */
enum { MEMBER_WORDS = 9 };

enum { LEGACY, ADVANCED };
enum { NONE, FULL_ROW, ONLY_UPDATED };
enum { CREATES = 1, UPDATES = 2, DELETES = 4, WHOLE_ROWS = 8 };

typedef struct {
    const int32_t *words;
    const uint8_t *text;
    int32_t columns, stream, time, number, operation, ttl;
    int32_t format, key_avro, value_avro, kinds, tombstones;
    int32_t clustered;    /* number of clustering columns */
    int32_t before, after, images;
    int32_t key_places;   /* number, then places */
    int32_t other_places; /* number, then value, flag, removed elements and whether no bytes are nothing, of each */
    int32_t key_steps, value_steps; /* number, then steps; key_steps -1: null keys */
    int32_t delete_steps;           /* as those, or one of the next */
    int32_t headers;                /* number, then HEADER_WORDS each; -1: none */
    int32_t tombstone_headers;      /* as those */
    int32_t unseen;                 /* struct of images before that nobody sees, but that must be right; or -1 */
    int32_t other_headers;          /* bytes that all other headers of a record with a value count for */
    int32_t statics;                /* so many of the other places, from the first, are of static columns */
    int32_t images_tell;            /* whether images say what an update modified that says nothing itself */
} plan;

/* Of deletes: their value is like all others, null, there is no record, or it is the plain way's. */
enum { AS_OTHERS = -1, NO_VALUE = -2, NO_RECORD = -3, PLAINLY = -4 };

/* What the records of one batch are made of. */
typedef struct change {
    const plan *p;
    language value;
    int64_t now, us;
    const cell *row, *before, *after;
    int code;
    char kind;
    int timed;
    cell *spare;  /* room for a row */
    known *texts; /* by their steps */
} change;

static int put_delta_entries(out *o, language l, const int32_t *member, cell value, cell removed) {
    int cells = (member[2] & FORM) == SET_DELTA ? 1 : 2;
    const uint8_t *at = NULL, *end = NULL, *gone = NULL, *gone_end = NULL;
    int64_t count = 0, removals = 0, each;
    if (value.size > 0) {
        TRY(count_of(value, &at, cells, &count));
        end = value.at + value.size;
    }
    if (removed.size > 0) {
        TRY(count_of(removed, &gone, 1, &removals));
        gone_end = removed.at + removed.size;
    }
    if (!l.avro) TRY(put_byte(o, '['));
    else if (count + removals) TRY(put_zigzag(o, count + removals));
    for (each = 0; each < count + removals; each++) {
        cell key, element = {NULL, -1};
        int added = each < count;
        TRY(added ? next_cell(&at, end, &key) : next_cell(&gone, gone_end, &key));
        if (added && cells == 2) TRY(next_cell(&at, end, &element));
        if (key.size < 0) return REFUSED;
        if (!l.avro) TRY(each ? put(o, ",{\"key\":", 8) : put(o, "{\"key\":", 7));
        MADE(put_optional(o, l, member[3], key));
        if (!l.avro) TRY(put(o, ",\"value\":", 9));
        if (added && cells == 1) TRY(l.avro ? put(o, "\2\1", 2) : put(o, "true", 4));
        else MADE(put_optional(o, l, member[4], element));
        if (!l.avro) TRY(put_byte(o, '}'));
    }
    if (at != end || gone != gone_end) return REFUSED;
    return put_byte(o, l.avro ? 0 : ']');
}

enum { MOST_FIELDS = 64 };

static int put_delta_fields(out *o, language l, const int32_t *member, cell value, cell removed) {
    const int32_t *node = l.words + member[3], *field = node + 3;
    cell found[MOST_FIELDS];
    uint8_t gone[MOST_FIELDS] = {0};
    int each, count = node[2];
    for (each = 0; each < count; each++) found[each].size = -1;
    if (value.size > 0) {
        const uint8_t *at = value.at, *end = value.at + value.size;
        for (each = 0; each < count && at < end; each++) TRY(next_cell(&at, end, &found[each]));
        if (at != end) return REFUSED;
    }
    if (removed.size > 0) {
        const uint8_t *at, *end = removed.at + removed.size;
        int64_t removals;
        TRY(count_of(removed, &at, 1, &removals));
        while (removals--) {
            cell index;
            TRY(next_cell(&at, end, &index));
            if (index.size != 2 || read_big(index.at, 2) >= (uint64_t)count) return REFUSED;
            gone[read_big(index.at, 2)] = 1;
        }
        if (at != end) return REFUSED;
    }
    if (!l.avro) TRY(put_byte(o, '{'));
    for (each = 0; each < count; each++, field += FIELD_WORDS) {
        TRY(put(o, l.text + field[0], field[1]));
        if (gone[each] && found[each].size >= 0) return REFUSED; /* no statement does both */
        if (found[each].size < 0 && !gone[each]) {
            TRY(put_null(o, l.avro));
            continue;
        }
        TRY(l.avro ? put_byte(o, 2) : put(o, "{\"value\":", 9));
        MADE(put_optional(o, l, field[2], found[each]));
        if (!l.avro) TRY(put_byte(o, '}'));
    }
    return l.avro ? DONE : put_byte(o, '}');
}

static int put_delta(out *o, language l, const int32_t *member, const cell *row) {
    cell value = row[member[5]], removed = {NULL, -1};
    int in_cell = !(member[2] & WITHOUT_CELL);
    int overwrite = member[6] >= 0 && is_true(row[member[6]]);
    if (member[7] >= 0) removed = row[member[7]];
    if (value.size < 0 && removed.size < 0 && !overwrite) return put_null(o, l.avro);
    if (l.avro) {
        TRY(put(o, "\2\2", in_cell ? 2 : 1));
        TRY(overwrite ? put_word(o, 1, "overwrite", 9) : put_word(o, 1, "modify", 6));
        TRY(put_byte(o, 2));
    } else {
        if (in_cell) TRY(put(o, "{\"value\":", 9));
        TRY(put(o, "{\"mode\":\"", 9));
        TRY(overwrite ? put(o, "overwrite", 9) : put(o, "modify", 6));
        TRY(put(o, "\",\"elements\":", 13));
    }
    if ((member[2] & FORM) == FIELDS_DELTA) TRY(put_delta_fields(o, l, member, value, removed));
    else TRY(put_delta_entries(o, l, member, value, removed));
    return l.avro ? DONE : put(o, "}}", in_cell ? 2 : 1);
}

static int put_member(out *o, language l, const int32_t *member, const cell *row) {
    cell c = row[member[5]];
    if (member[2] == BARE) {
        int verdict = put_optional(o, l, member[3], c);
        return verdict < 0 ? verdict : DONE;
    }
    if (member[2] != CELL) return put_delta(o, l, member, row);
    if (c.size < 0) {
        if (member[6] < 0 || !is_true(row[member[6]])) return put_null(o, l.avro);
        return l.avro ? put(o, "\2\0", 2) : put(o, "{\"value\":null}", 14);
    }
    if (l.avro) {
        TRY(put(o, "\2\2", 2));
    } else {
        TRY(put(o, "{\"value\":", 9));
    }
    {
        int verdict = put_value(o, l, member[3], c);
        if (verdict) return verdict == IS_EMPTY ? (l.avro ? DONE : put_byte(o, '}')) : verdict < 0 ? verdict : REFUSED;
    }
    return l.avro ? DONE : put_byte(o, '}');
}

/* Of a struct: where its beginning and its end stand in the text and how long they are, the number of members, whether
 * those that nobody wrote are left out. */
static int put_row(out *o, language l, int structure, const cell *row) {
    const int32_t *words = l.words + structure, *member = words + 6;
    int each, some = 0;
    if (!row) return put_null(o, l.avro);
    TRY(put(o, l.text + words[0], words[1]));
    for (each = 0; each < words[4]; each++, member += MEMBER_WORDS) {
        if (words[5]) {
            if (!member[8] && !is_touched(member + 5, row)) continue;
            if (some++) TRY(put_byte(o, ','));
        }
        TRY(put(o, l.text + member[0], member[1]));
        TRY(put_member(o, l, member, row));
    }
    return put(o, l.text + words[2], words[3]);
}

static int put_number_or_null(out *o, int avro, cell c, int size) {
    if (c.size < 0) return put_null(o, avro);
    if (c.size != size) return REFUSED;
    TRY(put_mark(o, avro));
    return put_integer(o, avro, read_signed(c.at, size));
}

/* A row, or what is known of it without an image. */
static int put_row_or_key(out *o, language l, const int32_t *step, const change *c, const cell *row) {
    const int32_t *keys = l.words + c->p->key_places;
    int each;
    if (row) return put_row(o, l, step[1], row);
    if (!step[2]) return REFUSED;
    for (each = 0; each < c->p->columns; each++) c->spare[each].size = -1;
    for (each = 1; each <= keys[0]; each++) c->spare[keys[each]] = c->row[keys[each]];
    return put_row(o, l, step[1], c->spare);
}

static int put_time(out *o, language l, const int32_t *step, const change *c) {
    /* Java divides towards zero, and goes round where nanoseconds leave 64 bits. */
    int64_t ms = c->us / 1000, time;
    if (step[0] >= NOW_US && !c->timed) return put_null(o, l.avro);
    if (step[1]) TRY(put_mark(o, l.avro));
    switch (step[0]) {
    case SOURCE_MS: time = ms; break;
    case SOURCE_US: return put_integer(o, l.avro, c->us); /* seldom the same again */
    case SOURCE_NS: time = (int64_t)((uint64_t)ms * 1000000); break;
    case NOW_MS: time = c->now / 1000000; break;
    case NOW_US: time = c->now / 1000; break;
    default: time = c->now;
    }
    return put_known(o, l.avro, time, c->texts + step[0]);
}

static int put_step(out *o, language l, const int32_t *step, const struct change *c) {
    const plan *p = c->p;
    char text[64];
    switch (step[0]) {
    case LITERAL: return put(o, l.text + step[1], step[2]);
    case SOURCE_MS: case SOURCE_US: case SOURCE_NS: case NOW_MS: case NOW_US: case NOW_NS:
        return put_time(o, l, step, c);
    case STREAM_ID: {
        cell id = c->row[p->stream];
        if (id.size < 1 || id.size > 32) return REFUSED;
        TRY(put_mark(o, l.avro));
        return put_word(o, l.avro, text, hex_of(id.at, id.size, text));
    }
    case TIME_ID:
        uuid_of(c->row[p->time].at, text);
        TRY(put_mark(o, l.avro));
        return put_word(o, l.avro, text, 36);
    case SEQUENCE_NUMBER: return put_number_or_null(o, l.avro, c->row[p->number], 4);
    case OPERATION:
        TRY(put_mark(o, l.avro));
        return put_integer(o, l.avro, c->code);
    case TTL: {
        cell none = {NULL, -1};
        return put_number_or_null(o, l.avro, p->ttl < 0 || !c->row[p->ttl].size ? none : c->row[p->ttl], 8);
    }
    case KIND:
        TRY(put_mark(o, l.avro));
        return put_word(o, l.avro, &c->kind, 1);
    case BEFORE: return put_row(o, l, step[1], c->before);
    case AFTER: return put_row(o, l, step[1], c->after);
    case KEY: return put_row(o, l, step[1], c->row);
    case BEFORE_OR_KEY: return put_row_or_key(o, l, step, c, c->before);
    case AFTER_OR_KEY: return put_row_or_key(o, l, step, c, c->after);
    default: return REFUSED;
    }
}

static int put_steps(out *o, language l, int steps, const change *c) {
    const int32_t *step = l.words + steps + 1;
    int each;
    for (each = 0; each < l.words[steps]; each++, step += STEP_WORDS)
        TRY(step[0] == LITERAL ? put(o, l.text + step[1], step[2]) : put_step(o, l, step, c));
    return DONE;
}

/* -- which rows a record shows -------------------------------------------------------------------------------- */

static const uint8_t YES = 1;

/* A pre-image as if it had been written: nulls that are set to null are cells, collections are there as a whole. */
static void as_written(const plan *p, const cell *row, cell *image) {
    const int32_t *place = p->words + p->other_places + 1;
    int each, count = place[-1];
    for (each = 0; each < count; each++, place += 4) {
        if (place[1] < 0) continue;
        image[place[1]] = row[place[1]];
        if (place[2] < 0) continue;
        image[place[2]].size = -1;
        if (image[place[0]].size >= 0) {
            image[place[1]].at = &YES;
            image[place[1]].size = 1;
        }
    }
}

static int is_modified(const int32_t *place, const cell *row) {
    cell value = row[place[0]];
    if (value.size > 0 || (value.size == 0 && !place[3])) return 1;
    if (place[1] >= 0 && is_true(row[place[1]])) return 1;
    return place[2] >= 0 && row[place[2]].size >= 0;
}

/* Whether the operation itself says what it modified: with 'delta': 'keys' it does not. */
static int tells_modified(const plan *p, const cell *row) {
    const int32_t *place = p->words + p->other_places + 1;
    int each, count = place[-1];
    for (each = 0; each < count; each++, place += 4)
        if (is_modified(place, row)) return 1;
    return 0;
}

/* A pre-image may hold what was modified and no more: there a null is set to null. Without it, all may be. */
static int told_by_images(const int32_t *place, const cell *before, const cell *after) {
    if (!before) return 1;
    if (before[place[0]].size < 0 && !(place[1] >= 0 && is_true(before[place[1]]))) return 0;
    return !after || !same(before[place[0]], after[place[0]]);
}

static void show_images(const plan *p, change *c, cell *before, cell *after) {
    const int32_t *place = p->words + p->other_places + 1, *key = p->words + p->key_places;
    int each, count = place[-1], mixed, told;
    c->before = p->before == NONE ? NULL : before;
    c->after = p->after == NONE || c->kind == 'd' ? NULL : after;
    if (c->kind != 'u') return;
    /* The pre-image may hold the modified columns only: what was left alone is as it is after the operation. */
    mixed = c->before && p->before == FULL_ROW && after && p->after != NONE;
    if (mixed)
        for (each = 1; each <= key[0]; each++) before[key[each]] = after[key[each]];
    else if (p->before != ONLY_UPDATED && p->after != ONLY_UPDATED) return;
    told = !p->images_tell || tells_modified(p, c->row);
    for (each = 0; each < count; each++, place += 4) {
        if (told ? is_modified(place, c->row) : told_by_images(place, before, after)) continue;
        if (c->before && p->before == ONLY_UPDATED) before[place[0]].size = -1;
        if (mixed) before[place[0]] = after[place[0]];
        if (c->after && p->after == ONLY_UPDATED) after[place[0]].size = -1;
    }
}

/* -- batches --------------------------------------------------------------------------------------------------- */

/* What a caller keeps between calls: room for the cells of four rows, and of what they have in common, and for the keys
 * of a batch. */
typedef struct {
    keys k;
    cell cells[];
} scratch;

int64_t scratch_size(int32_t columns) { return (int64_t)(sizeof(scratch) + 5 * sizeof(cell) * (size_t)columns); }

/* `head`: cells in front of those of every row, `headed` of them. */
typedef struct {
    const uint8_t *body;
    const int64_t *starts;
    const cell *head;
    int32_t headed;
    int64_t now, limit;
    scratch *room;
    known *texts;
} source;

static void row_of(const source *s, int row, int columns, cell *cells) {
    if (s->headed) memcpy(cells, s->head, (size_t)s->headed * sizeof *cells);
    cells_of(s->body + s->starts[row], columns - s->headed, cells + s->headed);
}

static int kind_of(const plan *p, cell operation, int *code) {
    if (operation.size != 1) return 0;
    *code = (int8_t)*operation.at;
    switch (*code) {
    case 1: return p->kinds & UPDATES ? 'u' : 0;
    case 2: return p->kinds & CREATES ? 'c' : 0;
    case 3: case -3: return p->kinds & DELETES ? 'd' : 0;
    /* Without clustering columns a partition is one row. */
    case 4: case -4: return p->kinds & DELETES && !p->clustered ? 'd' : 0;
    /* Of a snapshot, whether somebody has asked for it or not: they show what an image after a change does. */
    case 126: case 127: *code = 9; return p->kinds & WHOLE_ROWS ? 'r' : 0;
    default: return 0;
    }
}

static int is_image(cell operation) { return operation.size == 1 && (*operation.at == 0 || *operation.at == 9); }

/* Whether a row tells its key: a column that was renamed has lost its values. What is not clear is for the plain way to
 * judge. */
static inline int tells_key(const plan *p, const cell *row, int code) {
    const int32_t *keys = p->words + p->key_places;
    int each, sizes = 0;
    for (each = 1; each <= keys[0]; each++) sizes |= row[keys[each]].size;
    if (LIKELY(sizes >= 0)) return 1; /* only nulls are negative */
    return is_static(keys, p->clustered, p->words + p->other_places, p->statics, row, code);
}

/* Where everything of a record stands in what is written. */
typedef struct {
    int32_t key, key_size;
    int32_t value, value_size; /* -1: a tombstone, -2: null */
    int32_t headers, headers_size;
} record;
enum { TOMBSTONE = -1, NULL_VALUE = -2 };

/* As it counts in a transaction. */
static int64_t size_of(const plan *p, const record *r, int64_t headers) {
    int64_t size = 70 + headers + (r->key_size > 0 ? r->key_size : 0) + (r->value_size > 0 ? r->value_size : 0);
    return r->value_size == TOMBSTONE ? size : size + p->other_headers;
}

/* What a transform takes away was a part of the record in front of it, and poison there is poison. */
static int look_at_unseen(out *o, const plan *p, const change *c) {
    int64_t used = o->used;
    if (p->ttl >= 0 && c->row[p->ttl].size > 0 && c->row[p->ttl].size != 8) return REFUSED;
    if (c->before && (c->kind != 'd' || p->delete_steps < 0)) TRY(put_row(o, c->value, p->unseen, c->before));
    o->used = used;
    return DONE;
}

/* One change, its images (rows, or -1). Adds its records. */
static int put_change(
    out *o, const plan *p, const source *s, change *c, int before_row, int after_row, int first, record **to,
    int64_t *counted
) {
    int columns = p->columns;
    cell *before = s->room->cells + columns, *after = before + columns;
    language key = {p->words, p->text, p->key_avro};
    int64_t began, headers = 0;
    record made = {0, -1, 0, NULL_VALUE, 0, 0};
    if (before_row >= 0) row_of(s, before_row, columns, before);
    if (after_row >= 0) row_of(s, after_row, columns, after);
    c->timed = 1;
    if (p->format == LEGACY) {
        int image = p->images && before_row >= 0 && first;
        if (image) as_written(p, c->row, before);
        c->before = image ? before : c->kind == 'd' ? c->row : NULL;
        c->after = c->kind == 'd' ? NULL : c->row;
        c->timed = !image || c->kind == 'd';
    } else if (c->kind == 'r') {
        c->before = NULL;
        c->after = c->row;
    } else {
        show_images(p, c, before_row >= 0 ? before : NULL, after_row >= 0 ? after : NULL);
    }
    if (c->kind == 'd' && p->delete_steps == PLAINLY) return REFUSED;
    if (p->unseen >= 0) TRY(look_at_unseen(o, p, c));
    if (p->key_steps >= 0) {
        began = o->used;
        TRY(put_steps(o, key, p->key_steps, c));
        made.key = (int32_t)began;
        made.key_size = (int32_t)(o->used - began);
    }
    if (p->headers >= 0) {
        made.headers = (int32_t)o->used;
        TRY(put_headers(o, p->words, p->text, p->words + p->headers, c->row, c, &headers));
        made.headers_size = (int32_t)(o->used - made.headers);
    }
    if (c->kind != 'd' || p->delete_steps == AS_OTHERS || p->delete_steps >= 0) {
        began = o->used;
        TRY(put_steps(o, c->value, c->kind != 'd' || p->delete_steps < 0 ? p->value_steps : p->delete_steps, c));
        made.value = (int32_t)began;
        made.value_size = (int32_t)(o->used - began);
    }
    if (size_of(p, &made, headers) > s->limit) return REFUSED;
    if (c->kind != 'd' || p->delete_steps != NO_RECORD) {
        *counted += size_of(p, &made, headers);
        *(*to)++ = made;
    }
    if (c->kind == 'd' && p->tombstones) {
        if (p->tombstone_headers != p->headers) {
            headers = 0;
            made.headers = (int32_t)o->used;
            if (p->tombstone_headers >= 0)
                TRY(put_headers(o, p->words, p->text, p->words + p->tombstone_headers, c->row, c, &headers));
            made.headers_size = (int32_t)(o->used - made.headers);
        }
        made.value_size = TOMBSTONE;
        *counted += size_of(p, &made, headers);
        *(*to)++ = made;
    }
    return DONE;
}

static int put_batch(
    out *o, const plan *p, const source *s, int from, int to, record **made, const record *end, int64_t *us,
    int64_t *counted
) {
    cell *cells = s->room->cells, *other = cells + 3 * p->columns;
    keys *k = &s->room->k;
    change c = {p, {p->words, p->text, p->value_avro}, s->now, 0, cells, NULL, NULL, 0, 0, 1, other, s->texts};
    int row, images = 0, matched = 0;
    uint32_t last = 0;
    for (row = from; row < to; row++) {
        cell number, time;
        row_of(s, row, p->columns, cells);
        number = cells[p->number];
        time = cells[p->time];
        if (number.size != 4) return REFUSED;
        /* Rows of a snapshot have no order but the one they come in. */
        if (row > from && !(p->kinds & WHOLE_ROWS) && (uint32_t)read_big(number.at, 4) <= last) return REFUSED;
        last = (uint32_t)read_big(number.at, 4);
        images += is_image(cells[p->operation]);
        if (row == from) {
            uint64_t stamp = (read_big(time.at + 6, 2) & 0xFFF) << 48 | read_big(time.at + 4, 2) << 32;
            int64_t ticks = (int64_t)(stamp | read_big(time.at, 4)) - 0x01B21DD213814000LL;
            c.us = *us = ticks / 10 - (ticks % 10 < 0);
        }
    }
    /* What has a head is no row of a log. */
    if (images && (to - from > MOST_ROWS || s->headed)) return REFUSED;
    if (images && (p->images || p->format == ADVANCED)) {
        matched = 1;
        begin_keys(k, to - from);
        for (row = from; row < to; row++) {
            int key;
            row_of(s, row, p->columns, cells);
            key = key_of(k, cells, p->words + p->key_places, s->body, s->starts, row, p->columns, other);
            k->of_row[row - from] = key;
            if (!is_image(cells[p->operation])) continue;
            if (*cells[p->operation].at) k->after[key] = row;
            else k->before[key] = row;
        }
    }
    for (row = from; row < to; row++) {
        int key = matched ? k->of_row[row - from] : 0, before, after, first;
        if (to - from > 1) row_of(s, row, p->columns, cells);
        if (is_image(cells[p->operation])) {
            if (!tells_key(p, cells, *cells[p->operation].at)) return REFUSED;
            continue;
        }
        c.kind = (char)kind_of(p, cells[p->operation], &c.code);
        if (!c.kind) return REFUSED;
        if (c.kind != 'r' && !tells_key(p, cells, c.code)) return REFUSED;
        if (end - *made < 2) return FULL;
        before = matched ? k->before[key] : -1;
        after = matched && c.kind != 'd' ? k->after[key] : -1;
        first = !matched || !k->met[key];
        if (matched) k->met[key] = 1;
        TRY(put_change(o, p, s, &c, before, after, first, made, counted));
    }
    return DONE;
}

static void sum_up(const int64_t *times, int32_t count, int64_t *told) {
    int64_t earliest = times[0], latest = times[0], total = 0;
    for (int32_t i = 0; i < count; i++) {
        if (times[i] < earliest) earliest = times[i];
        if (times[i] > latest) latest = times[i];
        total += times[i] - times[0];
    }
    told[0] = earliest;
    told[1] = latest;
    told[2] = total + (times[0] - earliest) * count;
}

/* The records of batches `from` to `to`, as far as there is room; stops in front of the first that is refused. `head`:
 * `headed` cells, which stand in front of those of each row. Returns
 * how many batches were made; `ends` says how many records there are after each, `times` when they were written, in
 * microseconds. `told`: the verdict that stopped it (0: none), bytes as they count in a transaction, the earliest and the
 * latest time, and the sum of all, counted from the earliest. */
int32_t encode(
    const plan *p, const uint8_t *head, int32_t headed, const uint8_t *body, const int64_t *starts,
    const int32_t *firsts, int32_t from, int32_t to, int64_t now, int64_t limit, int64_t bytes, int32_t most,
    void *room, uint8_t *buffer, int64_t size, record *records, int32_t capacity, int32_t *ends, int64_t *times,
    int64_t *told
) {
    out o = {buffer, 0, size};
    cell *common = ((scratch *)room)->cells + 4 * p->columns;
    known texts[NOW_NS + 1] = {{0, 0, {0}}};
    source s = {body, starts, common, headed, now, limit, room, texts};
    record *made = records;
    int64_t counted = 0;
    int32_t batch, verdict = 0;
    cells_of(head, headed, common);
    for (batch = from; batch < to; batch++) {
        int64_t used = o.used, before_counted = counted;
        record *before = made;
        verdict = put_batch(&o, p, &s, firsts[batch], firsts[batch + 1], &made, records + capacity,
                            times + (batch - from), &counted);
        if (verdict) {
            o.used = used;
            made = before;
            counted = before_counted;
            break;
        }
        ends[batch - from] = (int32_t)(made - records);
        if (counted >= bytes || made - records >= most) {
            batch++;
            break;
        }
    }
    told[0] = verdict;
    told[1] = counted;
    if (batch > from) sum_up(times, batch - from, told + 2);
    return batch - from;
}

void set_powers(const uint64_t *powers) { memcpy(POWERS, powers, sizeof POWERS); }

/* Which sources this was built from: others are not talked to. */
const char *sources(void) { return SOURCES; }

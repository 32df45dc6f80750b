/* Rows of a page: where their cells are, which of them make a batch, and which images belong to which change.
 *
 * A page's rows follow each other; a row is its cells, each a length (below zero: null) and its bytes, all big-endian.
 * `scan` looks at every length once; everything behind it may trust them.
 */
#ifndef ROWS_H
#define ROWS_H

#include "values.h"

/* Row number `row` as its cells. */
static void cells_of(const uint8_t *at, int columns, cell *cells) {
    int column;
    for (column = 0; column < columns; column++) {
        int32_t size = (int32_t)read_four(at);
        at += 4;
        cells[column].at = at;
        cells[column].size = -1;
        /* Foreseen by the processor, which then need not wait for a length to find what follows a null. */
        if (LIKELY(size < 0)) continue;
        cells[column].size = size;
        at += size;
    }
}

static inline int same(cell one, cell other) {
    return one.size == other.size && (one.size <= 0 || !memcmp(one.at, other.at, (size_t)one.size));
}

/* Which of three places comes first, second and last; what is -1 comes last. */
static inline void in_order(const int32_t *places, int *order) {
    int each, other;
    for (each = 0; each < 3; each++) {
        int before = 0;
        for (other = 0; other < 3; other++)
            before += (uint32_t)places[other] < (uint32_t)places[each] ||
                      (places[other] == places[each] && other < each);
        order[before] = each;
    }
}

static inline int is_true(cell c) { return c.size == 1 && *c.at == 1; }

/* Whether a row says anything of a column: `places` of its value, its flag (-1: none) and its removed elements (as well). */
static inline int is_touched(const int32_t *places, const cell *row) {
    if (row[places[0]].size >= 0 || (places[1] >= 0 && is_true(row[places[1]]))) return 1;
    return places[2] >= 0 && row[places[2]].size >= 0;
}

/* Whether a row of a log without some of its key is clearly the static one's: an update of static columns and of nothing
 * else, or an image without others. `keys` and `others`: number and places, as in the plan; the last `clustered` and the
 * first `statics` of them are such. */
static int is_static(
    const int32_t *keys, int clustered, const int32_t *others, int statics, const cell *row, int code
) {
    int each, touched = 0;
    if (code != 1 && code != 0 && code != 9) return 0;
    for (each = 1; each <= keys[0]; each++)
        if ((row[keys[each]].size < 0) != (each > keys[0] - clustered)) return 0;
    for (each = 0; each < others[0]; each++) {
        if (!is_touched(others + 1 + 4 * each, row)) continue;
        if (each >= statics) return 0;
        touched = 1;
    }
    return touched || code != 1;
}

/* `starts`: where each row begins, and where the last ends. `firsts`: the first row of each batch that is known to be
 * complete, and the row behind the last of them: a batch ends with its mark, or before a row of its stream with another
 * time. Rows that are not so clearly parted are left to the plain way, with all that follow. Returns the number of
 * batches, or -1 if the bytes are no rows. `places`: stream, time, end of batch (-1: no such column). `turns`: how often
 * a batch is of another stream than the one before it. */
int64_t scan(
    const uint8_t *body, int64_t size, int64_t at, int32_t columns, int32_t rows, const int32_t *places,
    int64_t *starts, int32_t *firsts, int32_t *turns
) {
    const uint8_t *next = body + at, *end = body + size;
    cell stream = {NULL, -1}, time = {NULL, -1};
    int64_t batches = 0;
    int row, whole = 1, open = 0, order[3];
    in_order(places, order);
    firsts[0] = *turns = 0;
    for (row = 0; row < rows; row++) {
        cell found[3] = {{NULL, -1}, {NULL, -1}, {NULL, -1}};
        int column, due = 0;
        starts[row] = next - body;
        for (column = 0; column < columns; column++) {
            cell each = {NULL, -1};
            if (next_cell(&next, end, &each)) return -1;
            if (column != places[order[due]]) continue;
            found[order[due]] = each;
            due += due < 2;
        }
        if (!whole) continue;
        if (found[0].size < 0 || found[1].size != 16) {
            whole = 0;
        } else if (!open || !same(time, found[1]) || !same(stream, found[0])) {
            int other = !same(stream, found[0]);
            if (open && other) {
                whole = 0;
                continue;
            }
            if (open) firsts[++batches] = row;
            *turns += batches && other;
            stream = found[0];
            time = found[1];
            open = 1;
        }
        if (whole && is_true(found[2])) {
            firsts[++batches] = row + 1;
            open = 0;
        }
    }
    starts[rows] = next - body;
    return batches;
}

/* As `scan`, of the rows of a table as they are selected: partition by partition. `keys`: so many columns, from the first
 * on, are the key of a partition. Returns the number of partitions, or -1. */
int64_t scan_selected(
    const uint8_t *body, int64_t size, int64_t at, int32_t columns, int32_t rows, int32_t keys, int64_t *starts,
    int32_t *firsts
) {
    const uint8_t *next = body + at, *end = body + size;
    int64_t partitions = 0, key = 0, before = 0;
    int row;
    for (row = 0; row < rows; row++) {
        int column;
        starts[row] = next - body;
        for (column = 0; column < columns; column++) {
            cell each;
            if (next_cell(&next, end, &each)) return -1;
            if (column + 1 == keys) key = next - body - starts[row];
        }
        if (!row || key != before || memcmp(body + starts[row - 1], body + starts[row], (size_t)key))
            firsts[partitions++] = row;
        before = key;
    }
    starts[rows] = next - body;
    firsts[partitions] = rows;
    return partitions;
}

enum { MOST_ROWS = 4096 };

/* The rows of a batch by their keys, to find images by. `of_row`: which key a row has; of each key its first row, its
 * last images, and whether a change of it was met. */
typedef struct {
    int32_t table[2 * MOST_ROWS];
    int32_t of_row[MOST_ROWS];
    int32_t first[MOST_ROWS];
    int32_t before[MOST_ROWS];
    int32_t after[MOST_ROWS];
    uint8_t met[MOST_ROWS];
    uint64_t hash[MOST_ROWS];
    int32_t count;
    int32_t mask;
} keys;

static void begin_keys(keys *k, int rows) {
    k->mask = 7;
    while (k->mask + 1 < 2 * rows) k->mask = 2 * k->mask + 1;
    memset(k->table, 0xFF, (size_t)(k->mask + 1) * sizeof *k->table);
    k->count = 0;
}

/* The number of a row's key. `row` has its cells, and those of the key that it is compared with go into `other`. */
static int key_of(keys *k, const cell *row, const int32_t *places, const uint8_t *body, const int64_t *starts,
                  int number, int columns, cell *other) {
    uint64_t hash = 1469598103934665603ULL;
    int each, at;
    for (each = 1; each <= places[0]; each++) {
        cell c = row[places[each]];
        hash = (hash ^ (uint32_t)c.size) * 1099511628211ULL;
        for (at = 0; at < c.size; at++) hash = (hash ^ c.at[at]) * 1099511628211ULL;
    }
    hash ^= hash >> 29;
    for (at = (int)(hash & (uint64_t)k->mask);; at = (at + 1) & k->mask) {
        int found = k->table[at];
        if (found < 0) break;
        if (k->hash[found] != hash) continue;
        cells_of(body + starts[k->first[found]], columns, other);
        for (each = 1; each <= places[0]; each++)
            if (!same(row[places[each]], other[places[each]])) break;
        if (each > places[0]) return found;
    }
    k->table[at] = k->count;
    k->first[k->count] = number;
    k->hash[k->count] = hash;
    k->before[k->count] = k->after[k->count] = -1;
    k->met[k->count] = 0;
    return k->count++;
}

#endif

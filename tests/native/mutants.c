/* Mutants of one page through the kernel, without an object of Python's for any of them. Every mutant lies in memory of
 * its own size, so that sanitizers see a read beyond it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int64_t scan(
    const uint8_t *body, int64_t size, int64_t at, int32_t columns, int32_t rows, const int32_t *places,
    int64_t *starts, int32_t *firsts, int32_t *turns
);
int64_t scan_selected(
    const uint8_t *body, int64_t size, int64_t at, int32_t columns, int32_t rows, int32_t keys, int64_t *starts,
    int32_t *firsts
);
int32_t encode(
    const void *plan, const uint8_t *head, int32_t headed, const uint8_t *body, const int64_t *starts,
    const int32_t *firsts, int32_t from, int32_t to, int64_t now, int64_t limit, int64_t bytes, int32_t most,
    void *room, uint8_t *buffer, int64_t size, void *records, int32_t capacity, int32_t *ends, int64_t *times,
    int64_t *told
);

static uint64_t state;

static uint64_t below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

/* A few bytes changed, most of them where lengths stand; sometimes cut off. Returns the size that is left. */
static int64_t mutate(uint8_t *page, int64_t size) {
    static const uint8_t times[] = {1, 1, 2, 3, 8}, lengths[] = {0, 1, 2, 3, 5, 7, 9, 15, 17, 255};
    static const uint8_t words[4][4] = {{255, 255, 255, 255}, {127, 255, 255, 255}, {0, 0, 0, 0}, {128, 0, 0, 0}};
    int left = times[below(sizeof times)];
    while (left--) {
        int64_t at = (int64_t)below((uint64_t)size);
        switch (below(4)) {
        case 0: page[at] = (uint8_t)below(256); break;
        case 1: page[at] ^= (uint8_t)(1 << below(8)); break;
        case 2:
            while (at < size - 3 && (page[at] || page[at + 1] || page[at + 2])) at++;
            if (at < size - 3) page[at + 3] = lengths[below(sizeof lengths)];
            break;
        default: {
            int64_t count = size - at < 4 ? size - at : 4;
            memcpy(page + at, words[below(4)], (size_t)count);
        }
        }
    }
    return below(20) ? size : (int64_t)below((uint64_t)size);
}

/* `told`: mutants that are no pages, records, batches that were refused. */
void mutants(
    const void *plan, const uint8_t *page, int64_t size, int32_t columns, int32_t rows, const int32_t *places,
    int64_t count, uint64_t seed, void *room, uint8_t *buffer, int64_t buffer_size, void *records, int32_t capacity,
    int64_t *told
) {
    int64_t *starts = malloc((size_t)(rows + 1) * sizeof *starts), *times = malloc((size_t)(rows + 1) * sizeof *times);
    int32_t *firsts = malloc((size_t)(rows + 1) * sizeof *firsts), *ends = malloc((size_t)(rows + 1) * sizeof *ends);
    state = seed | 1;
    while (count--) {
        uint8_t *whole = malloc((size_t)size), *body;
        int64_t left, batches;
        int32_t turns, from = 0;
        memcpy(whole, page, (size_t)size);
        left = mutate(whole, size);
        body = malloc((size_t)left + !left);
        memcpy(body, whole, (size_t)left);
        free(whole);
        scan_selected(body, left, 0, columns, rows, (int32_t)below((uint64_t)columns + 1), starts, firsts);
        batches = scan(body, left, 0, columns, rows, places, starts, firsts, &turns);
        told[0] += batches < 0;
        while (from < batches) {
            int64_t said[5];
            int32_t made = encode(plan, NULL, 0, body, starts, firsts, from, (int32_t)batches, 1765000000123456789,
                                  1 << 30, 1 << 30, 2000, room, buffer, buffer_size, records, capacity, ends, times,
                                  said);
            told[1] += made ? ends[made - 1] : 0;
            told[2] += !made;
            from += made ? made : 1;
        }
        free(body);
    }
    free(starts), free(times), free(firsts), free(ends);
}

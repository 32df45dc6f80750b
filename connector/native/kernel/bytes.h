/* What happens with every few bytes of a record: copies, numbers of the protocol, decimal digits.
 *
 * Bytes are put together one by one in a single expression, which compilers make one load of, and a swap if need be:
 * it says the same to a processor of either order.
 */
#ifndef BYTES_H
#define BYTES_H

#include <stdint.h>
#include <string.h>

/* For branches that are better foreseen than computed with. */
#define LIKELY(condition) __builtin_expect(!!(condition), 1)

/* Both ends of what is shorter than twice `size`, which meet or overlap: sizes that are known are no calls. */
#define COPY_ENDS(size)                                                                 \
    do {                                                                                \
        uint8_t head_[size], tail_[size];                                               \
        memcpy(head_, from, size);                                                      \
        memcpy(tail_, (const uint8_t *)from + count - (size), size);                    \
        memcpy(to, head_, size);                                                        \
        memcpy(to + count - (size), tail_, size);                                       \
    } while (0)

/* As `memcpy`, which for a few bytes costs more than they do. */
static inline void copy(uint8_t *to, const void *from, int64_t count) {
    if (count > 64) {
        memcpy(to, from, (size_t)count);
    } else if (count > 32) {
        COPY_ENDS(32);
    } else if (count >= 16) {
        COPY_ENDS(16);
    } else if (count >= 8) {
        COPY_ENDS(8);
    } else if (count >= 4) {
        COPY_ENDS(4);
    } else if (count >= 2) {
        COPY_ENDS(2);
    } else if (count) {
        *to = *(const uint8_t *)from;
    }
}

static inline uint32_t read_four(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | (uint32_t)at[3];
}

static inline uint64_t read_eight(const uint8_t *at) {
    return (uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 | (uint64_t)at[2] << 40 | (uint64_t)at[3] << 32 |
           (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16 | (uint64_t)at[6] << 8 | (uint64_t)at[7];
}

/* The first byte lowest. */
static inline uint64_t read_text(const uint8_t *at) {
    return (uint64_t)at[7] << 56 | (uint64_t)at[6] << 48 | (uint64_t)at[5] << 40 | (uint64_t)at[4] << 32 |
           (uint64_t)at[3] << 24 | (uint64_t)at[2] << 16 | (uint64_t)at[1] << 8 | (uint64_t)at[0];
}

static inline uint64_t read_big(const uint8_t *at, int count) {
    uint64_t value = 0;
    if (count == 4) return read_four(at);
    if (count == 8) return read_eight(at);
    while (count--) value = value << 8 | *at++;
    return value;
}

static inline int64_t read_signed(const uint8_t *at, int count) {
    uint64_t value = read_big(at, count);
    int unused = 64 - 8 * count;
    return (int64_t)(value << unused) >> unused;
}

static const char PAIRS[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354"
    "55565758596061626364656667686970717273747576777879808182838485868788899091929394959697989900";

/* How many decimal digits a number has: from its bits, whose estimate is right or one too low. */
static inline int count_digits(uint64_t value) {
    static const uint64_t powers[] = {
        0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000,
        1000000000000, 10000000000000, 100000000000000, 1000000000000000, 10000000000000000, 100000000000000000,
        1000000000000000000, 10000000000000000000U,
    };
    int estimate = (64 - __builtin_clzll(value | 1)) * 1233 >> 12;
    return estimate + (value >= powers[estimate]);
}

/* Writes the digits in front of `end`. Eight at a time, as of those none has to wait for another. */
static inline void write_digits(uint64_t value, char *end) {
    unsigned left;
    for (; value >= 100000000; value /= 100000000) {
        unsigned eight = (unsigned)(value % 100000000), high = eight / 10000, low = eight % 10000;
        end -= 8;
        memcpy(end, PAIRS + 2 * (high / 100), 2);
        memcpy(end + 2, PAIRS + 2 * (high % 100), 2);
        memcpy(end + 4, PAIRS + 2 * (low / 100), 2);
        memcpy(end + 6, PAIRS + 2 * (low % 100), 2);
    }
    for (left = (unsigned)value; left >= 100; left /= 100) {
        end -= 2;
        memcpy(end, PAIRS + 2 * (left % 100), 2);
    }
    if (left >= 10) memcpy(end - 2, PAIRS + 2 * left, 2);
    else end[-1] = (char)('0' + left);
}

/* Decimal digits; returns how many. `text` has room for twenty. */
static inline int digits_of(uint64_t value, char *text) {
    int count = count_digits(value);
    write_digits(value, text + count);
    return count;
}

#endif

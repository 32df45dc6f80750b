/* Numbers that are not plain integers: doubles and floats as Java writes them, decimals and varints of some length,
 * durations.
 *
 * Doubles take the shortest text that reads as the same number (Raffaello Giulietti's Schubfach, which Java uses since
 * JDK 19). Its table of powers of ten, 128 bits each, comes from Python, which has whole numbers of any length.
 */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <stdio.h>
#include <stdlib.h>

#include "out.h"

enum { FIRST_POWER = -292, LAST_POWER = 324 };

static uint64_t POWERS[LAST_POWER - FIRST_POWER + 1][2];

__extension__ typedef unsigned __int128 wide;

static inline uint64_t round_to_odd(const uint64_t *power, uint64_t factor) {
    uint64_t below = (uint64_t)((wide)power[1] * factor >> 64);
    wide above = (wide)power[0] * factor + below;
    return (uint64_t)(above >> 64) | ((uint64_t)above > 1);
}

/* The shortest decimal of a positive finite double: the number is `*decimal` times ten to the power that is returned. */
static int shortest(uint64_t bits, uint64_t *decimal) {
    uint64_t fraction = bits & 0xFFFFFFFFFFFFFULL, c, low, high, middle, s, lower, upper;
    int exponent = (int)(bits >> 52 & 0x7FF), q, k, h, narrow, odd;
    const uint64_t *power;
    if (exponent) {
        c = fraction | 0x10000000000000ULL;
        q = exponent - 1075;
        if (q <= 0 && q > -53 && !(c & ((1ULL << -q) - 1))) {
            *decimal = c >> -q;
            return 0;
        }
    } else {
        c = fraction;
        q = -1074;
    }
    odd = (int)(c & 1);
    narrow = fraction == 0 && exponent > 1;
    k = (q * 1262611 - (narrow ? 524031 : 0)) >> 22;
    h = q + ((-k * 1741647) >> 19) + 1;
    power = POWERS[-k - FIRST_POWER];
    low = round_to_odd(power, (4 * c - 2 + (uint64_t)narrow) << h);
    middle = round_to_odd(power, (4 * c) << h);
    high = round_to_odd(power, (4 * c + 2) << h);
    lower = low + (uint64_t)odd;
    upper = high - (uint64_t)odd;
    s = middle / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        int below = lower <= 40 * tens, above = 40 * tens + 40 <= upper;
        if (below != above) {
            *decimal = tens + (uint64_t)above;
            return k + 1;
        }
    }
    {
        int below = lower <= 4 * s, above = 4 * s + 4 <= upper;
        uint64_t half = 4 * s + 2;
        if (below != above) *decimal = s + (uint64_t)above;
        else *decimal = s + (middle > half || (middle == half && (s & 1)));
    }
    return k;
}

/* Java's text of digits without trailing zeros; `scale` is the power of ten of the first. Returns its length. */
static int java_text(int negative, const char *digits, int count, int scale, char *text) {
    char *to = text;
    int at;
    if (negative) *to++ = '-';
    if (scale >= -3 && scale < 7) {
        if (scale < 0) {
            *to++ = '0';
            *to++ = '.';
            for (at = -1; at > scale; at--) *to++ = '0';
            memcpy(to, digits, (size_t)count);
            return (int)(to + count - text);
        }
        for (at = 0; at <= scale; at++) *to++ = at < count ? digits[at] : '0';
        *to++ = '.';
        if (count <= scale + 1) *to++ = '0';
        for (; at < count; at++) *to++ = digits[at];
        return (int)(to - text);
    }
    *to++ = digits[0];
    *to++ = '.';
    if (count == 1) *to++ = '0';
    memcpy(to, digits + 1, (size_t)(count - 1));
    to += count - 1;
    *to++ = 'E';
    if (scale < 0) *to++ = '-';
    to += digits_of((uint64_t)(scale < 0 ? -scale : scale), to);
    return (int)(to - text);
}

static int put_not_a_number(out *o, int negative, int infinite) {
    if (!infinite) return put_word(o, 0, "NaN", 3);
    return negative ? put_word(o, 0, "-Infinity", 9) : put_word(o, 0, "Infinity", 8);
}

/* Digits of what "%.*e" wrote, without trailing zeros, and the power of ten of the first. */
static int digits_of_text(const char *text, char *digits, int *scale) {
    int count = 0;
    for (; *text != 'e'; text++)
        if (*text >= '0' && *text <= '9') digits[count++] = *text;
    *scale = atoi(text + 1);
    while (count > 1 && digits[count - 1] == '0') count--;
    return count;
}

static int put_double(out *o, int avro, const uint8_t *raw) {
    uint64_t bits = read_big(raw, 8), decimal;
    int negative = (int)(bits >> 63), power, count, scale;
    char digits[24], text[40];
    if (avro) {
        uint8_t turned[8];
        int at;
        for (at = 0; at < 8; at++) turned[at] = raw[7 - at];
        return put(o, turned, 8);
    }
    bits &= 0x7FFFFFFFFFFFFFFFULL;
    if (bits >= 0x7FF0000000000000ULL) return put_not_a_number(o, negative, bits == 0x7FF0000000000000ULL);
    if (!bits) return negative ? put(o, "-0.0", 4) : put(o, "0.0", 3);
    power = shortest(bits, &decimal);
    count = digits_of(decimal, digits);
    scale = count - 1 + power;
    while (count > 1 && digits[count - 1] == '0') count--;
    if (count == 1 && (scale < -3 || scale >= 7)) {
        /* Java takes the nearest of the texts with two digits where one digit would do. */
        char printed[40];
        double value;
        memcpy(&value, &bits, 8);
        snprintf(printed, sizeof printed, "%.1e", value);
        count = digits_of_text(printed, digits, &scale);
    }
    return put(o, text, java_text(negative, digits, count, scale, text));
}

/* Six digits name every normal number that was written with at most six: no fewer are tried. */
static int put_float(out *o, int avro, const uint8_t *raw) {
    uint32_t bits = (uint32_t)read_big(raw, 4), whole = bits & 0x7FFFFFFF, again;
    int negative = (int)(bits >> 31), count, scale, precision;
    char digits[24], text[40], printed[40];
    float value, read;
    if (avro) {
        uint8_t turned[4] = {raw[3], raw[2], raw[1], raw[0]};
        if (whole > 0x7F800000) return REFUSED; /* what becomes of the bits of a NaN is Python's to say */
        return put(o, turned, 4);
    }
    if (whole >= 0x7F800000) return put_not_a_number(o, negative, whole == 0x7F800000);
    if (!whole) return negative ? put(o, "-0.0", 4) : put(o, "0.0", 3);
    memcpy(&value, &whole, 4);
    for (precision = whole >= 0x00800000 ? 5 : 1; precision < 9; precision++) {
        snprintf(printed, sizeof printed, "%.*e", precision, (double)value);
        read = (float)strtod(printed, NULL);
        memcpy(&again, &read, 4);
        if (again == whole) break;
    }
    count = digits_of_text(printed, digits, &scale);
    return put(o, text, java_text(negative, digits, count, scale, text));
}

enum { LONGEST_NUMBER = 64, MOST_DIGITS = 176 };

/* Digits of a two's complement number of at most LONGEST_NUMBER bytes; the sign apart. */
static int number_digits(const uint8_t *raw, int count, char *text, int *negative) {
    uint32_t words[LONGEST_NUMBER / 4];
    char reversed[MOST_DIGITS];
    int used = (count + 3) / 4, at, digits = 0;
    uint8_t fill;
    *negative = raw[0] >> 7;
    if (count <= 8) {
        int64_t value = read_signed(raw, count);
        return digits_of(*negative ? 0 - (uint64_t)value : (uint64_t)value, text);
    }
    fill = *negative ? 0xFF : 0;
    for (at = 0; at < used; at++) { /* lowest word first */
        int byte;
        words[at] = 0;
        for (byte = 3; byte >= 0; byte--) {
            int from = count - 1 - (4 * at + byte);
            words[at] = words[at] << 8 | (from >= 0 ? raw[from] : fill);
        }
    }
    if (*negative) {
        uint64_t carry = 1;
        for (at = 0; at < used; at++) {
            carry += (uint32_t)~words[at];
            words[at] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    while (used) {
        uint64_t rest = 0;
        int nine;
        for (at = used - 1; at >= 0; at--) {
            rest = rest << 32 | words[at];
            words[at] = (uint32_t)(rest / 1000000000);
            rest %= 1000000000;
        }
        for (nine = 0; nine < 9; nine++, rest /= 10) reversed[digits++] = (char)('0' + rest % 10);
        while (used && !words[used - 1]) used--;
    }
    while (digits > 1 && reversed[digits - 1] == '0') digits--;
    for (at = 0; at < digits; at++) text[at] = reversed[digits - 1 - at];
    return digits;
}

static int put_varint(out *o, int avro, const uint8_t *raw, int64_t count) {
    char text[MOST_DIGITS + 1];
    int negative, digits;
    if (count < 1 || count > LONGEST_NUMBER) return REFUSED;
    digits = number_digits(raw, (int)count, text + 1, &negative);
    text[0] = '-';
    return put_word(o, avro, text + !negative, digits + negative);
}

/* As Python's Decimal writes it, and Java's BigDecimal: an exponent where the scale is negative or there would be more
 * than six digits of zeros. */
static int put_decimal(out *o, int avro, const uint8_t *raw, int64_t count) {
    char digits[MOST_DIGITS], text[MOST_DIGITS + 40], *to = text;
    int64_t scale, left;
    int negative, found, at;
    if (count < 5 || count > LONGEST_NUMBER + 4) return REFUSED;
    scale = read_signed(raw, 4);
    found = number_digits(raw + 4, (int)count - 4, digits, &negative);
    left = found - scale; /* digits in front of the point */
    if (negative) *to++ = '-';
    if (scale >= 0 && left > -6) {
        if (left <= 0) {
            *to++ = '0';
            *to++ = '.';
            for (at = 0; at > left; at--) *to++ = '0';
            memcpy(to, digits, (size_t)found);
            to += found;
        } else {
            memcpy(to, digits, (size_t)left);
            to += left;
            if (scale) {
                *to++ = '.';
                memcpy(to, digits + left, (size_t)(found - left));
                to += found - left;
            }
        }
    } else {
        int64_t exponent = left - 1;
        *to++ = digits[0];
        if (found > 1) {
            *to++ = '.';
            memcpy(to, digits + 1, (size_t)(found - 1));
            to += found - 1;
        }
        *to++ = 'E';
        *to++ = exponent < 0 ? '-' : '+';
        to += digits_of((uint64_t)(exponent < 0 ? -exponent : exponent), to);
    }
    return put_word(o, avro, text, (int)(to - text));
}

static int read_vint(const uint8_t *raw, int64_t count, int64_t *at, uint64_t *value) {
    int extra = 0;
    uint8_t first;
    if (*at >= count) return REFUSED;
    first = raw[(*at)++];
    while (extra < 8 && first & (0x80 >> extra)) extra++;
    if (count - *at < extra) return REFUSED;
    *value = extra < 8 ? first & (0xFFu >> (extra + 1)) : 0;
    while (extra--) *value = *value << 8 | raw[(*at)++];
    return DONE;
}

static int put_duration(out *o, int avro, const uint8_t *raw, int64_t count) {
    static const struct { const char *name; uint64_t size; } units[] = {
        {"h", 3600000000000ULL}, {"m", 60000000000ULL}, {"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1},
    };
    uint64_t zigzag[3], parts[3], counts[2];
    char text[160], *to = text;
    int64_t at = 0;
    int part, negative = 0;
    for (part = 0; part < 3; part++) {
        TRY(read_vint(raw, count, &at, &zigzag[part]));
        negative |= (int)(zigzag[part] & 1);
        parts[part] = (zigzag[part] >> 1) + (zigzag[part] & 1);
    }
    if (at != count || zigzag[0] >> 32 || zigzag[1] >> 32) return REFUSED;
    if (negative) *to++ = '-';
    counts[0] = parts[0] / 12;
    counts[1] = parts[0] % 12;
    if (counts[0]) {
        to += digits_of(counts[0], to);
        *to++ = 'y';
    }
    if (counts[1]) {
        to += digits_of(counts[1], to);
        *to++ = 'm';
        *to++ = 'o';
    }
    if (parts[1]) {
        to += digits_of(parts[1], to);
        *to++ = 'd';
    }
    for (part = 0; part < 6; part++) {
        uint64_t units_of = parts[2] / units[part].size;
        parts[2] %= units[part].size;
        if (units_of) {
            size_t length = strlen(units[part].name);
            to += digits_of(units_of, to);
            memcpy(to, units[part].name, length);
            to += length;
        }
    }
    return put_word(o, avro, text, (int)(to - text));
}

#endif

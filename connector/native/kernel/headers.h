/* Columns of the key, and copies of what envelopes tell, as texts, for headers of records: their place in the plan's text
 * of names, their length, their bytes. */
#ifndef HEADERS_H
#define HEADERS_H

#include "values.h"

enum { OF_JSON, OF_TEXT, OF_ASCII, OF_DATE, OF_TIMESTAMP, OF_STEP };
/* Of a header: where its name is, what that counts for, how its text is made, a node, the place of the column. An OF_STEP
 * has a step in the place of the node; a literal's text stands as it is, without one there is null. */
enum { HEADER_WORDS = 5 };

/* `2024-06-10`, of days since 1970; with a sign where a year has not four digits. */
static int date_of(int64_t days, char *text) {
    /* Eras of 400 years, whose years begin in March. */
    int64_t shifted = days + 719468, era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t from_march = (5 * day_of_year + 2) / 153, month = from_march < 10 ? from_march + 3 : from_march - 9;
    int64_t year = year_of_era + era * 400 + (month <= 2), day = day_of_year - (153 * from_march + 2) / 5 + 1;
    char digits[20], *to = text;
    int count = digits_of((uint64_t)(year < 0 ? -year : year), digits), zeros;
    if (year < 0 || year > 9999) *to++ = year < 0 ? '-' : '+';
    for (zeros = 4 - count; zeros > 0; zeros--) *to++ = '0';
    memcpy(to, digits, (size_t)count);
    to += count;
    *to++ = '-';
    memcpy(to, PAIRS + 2 * month, 2);
    to += 2;
    *to++ = '-';
    memcpy(to, PAIRS + 2 * day, 2);
    return (int)(to + 2 - text);
}

/* `2024-06-10T12:34:56.789Z`, of milliseconds since 1970. */
static int timestamp_of(int64_t milliseconds, char *text) {
    const int64_t day = 86400000;
    int64_t before = milliseconds % day < 0, rest = milliseconds % day + before * day;
    int64_t parts[3] = {rest / 3600000, rest / 60000 % 60, rest / 1000 % 60};
    char *to = text + date_of(milliseconds / day - before, text);
    int each;
    for (each = 0; each < 3; each++) {
        *to++ = each ? ':' : 'T';
        memcpy(to, PAIRS + 2 * parts[each], 2);
        to += 2;
    }
    *to++ = '.';
    *to++ = (char)('0' + rest % 1000 / 100);
    memcpy(to, PAIRS + 2 * (rest % 100), 2);
    to[2] = 'Z';
    return (int)(to + 3 - text);
}

struct change;
static int put_step(out *o, language l, const int32_t *step, const struct change *c);

static void take_quotes(out *o, int64_t began) {
    int64_t size = o->used - began;
    if (size < 2 || o->start[began] != '"') return;
    memmove(o->start + began, o->start + began + 1, (size_t)size - 2);
    o->used -= 2;
}

/* The text of JSON, without the quotes of a text that needs no escapes. */
static int put_json_text(out *o, language l, int node, cell c) {
    int64_t began = o->used;
    int verdict = put_value(o, l, node, c);
    if (verdict == IS_NULL || verdict < 0) return verdict;
    take_quotes(o, began);
    return DONE;
}

static int put_step_text(out *o, language l, const int32_t *header, const struct change *c) {
    const int32_t *step = l.words + header[3];
    int64_t began = o->used;
    if (header[3] < 0) return IS_NULL;
    TRY(put_step(o, l, step, c));
    if (!step[0]) return DONE; /* a literal */
    if (o->used - began == 4 && o->start[began] == 'n') return IS_NULL;
    take_quotes(o, began);
    return DONE;
}

static int put_header_text(out *o, language l, const int32_t *header, cell c) {
    char text[64];
    switch (header[2]) {
    case OF_TEXT: case OF_ASCII: {
        int64_t at = 0;
        while (at < c.size) {
            int length = utf8_length(c.at + at, c.size - at);
            if (!length || (header[2] == OF_ASCII && length > 1)) return REFUSED;
            at += length;
        }
        return put(o, c.at, c.size);
    }
    case OF_DATE:
        if (c.size != 4) return REFUSED;
        return put(o, text, date_of((int64_t)read_big(c.at, 4) - 2147483648LL, text));
    case OF_TIMESTAMP:
        if (c.size != 8) return REFUSED;
        return put(o, text, timestamp_of(read_signed(c.at, 8), text));
    default: return put_json_text(o, l, header[3], c);
    }
}

/* `counted`: what they count for in a transaction. Of a null column there is none; a copy may be null. */
static int put_headers(
    out *o, const int32_t *words, const uint8_t *text, const int32_t *headers, const cell *row,
    const struct change *c, int64_t *counted
) {
    language json = {words, text, 0};
    const int32_t *header = headers + 1;
    int each;
    for (each = 0; each < headers[0]; each++, header += HEADER_WORDS) {
        int64_t began = o->used;
        int32_t size, name = header[0];
        int verdict, copy = header[2] == OF_STEP;
        if (!copy && row[header[4]].size < 0) continue;
        TRY(put(o, &name, 4));
        TRY(put(o, &name, 4)); /* room for the length */
        verdict = copy ? put_step_text(o, json, header, c) : put_header_text(o, json, header, row[header[4]]);
        if (verdict < 0) return verdict;
        if (verdict == IS_NULL) o->used = began + copy * 8;
        if (verdict == IS_NULL && !copy) continue;
        size = verdict == IS_NULL ? -1 : (int32_t)(o->used - began - 8);
        memcpy(o->start + began + 4, &size, 4);
        *counted += header[1] + (size > 0 ? size : 0) + 10;
    }
    return DONE;
}

#endif

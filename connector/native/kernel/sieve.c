/* Records of the offsets topic in bulk, without an object of Python's for any that is passed over.
 *
 * One connector's records are told by the first bytes of their keys, and of equal keys only the newest is kept. What does
 * not begin so, and is not plainly another one's either, is handed on as it is: `OwnKeys` of records.py judges it, and puts
 * keys together that are spelled differently. Partitions are assigned to the binding's consumer, and their queues lead to
 * one of our own (`open_queue`). What comes there is taken as librdkafka's events: as messages some of it would call back
 * into Python, which is not ready for that outside of the binding's calls.
 */
#define _POSIX_C_SOURCE 200112L
#include "librdkafka.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SMALLEST_TABLE = 1024 };
enum { EVENT_FETCH = 2, EVENT_ERROR = 8 };
enum { FOREIGN, OURS, ODD };
enum { NONE = -1 };

/* As sieve.py unpacks it, in front of key, value and headers. */
typedef struct {
    int64_t offset, time;
    int32_t partition, error, stamp, key_size, value_size, headers_size;
} head;

typedef struct {
    uint64_t hash;
    int64_t turn;
    int32_t size, room;
    uint8_t bytes[];
} entry;

typedef struct {
    int32_t values; /* not their keys alone */
    int32_t usual_size;
    int32_t partitions;
    int64_t *ends; /* of each partition, behind what has come */
    int64_t most_bytes;
    int32_t most;
    int32_t events;
    int64_t turn, size;
    entry **kept;
    int32_t count, room;
    int32_t *table; /* numbers of `kept` and one, of those that may be replaced */
    int32_t capacity;
    uint8_t *scratch; /* of headers */
    int64_t scratched, scratch_room;
    uint8_t usual[];
} sieve;

void close_sieve(sieve *s) {
    int32_t each;
    for (each = 0; each < s->count; each++) free(s->kept[each]);
    free(s->kept);
    free(s->table);
    free(s->scratch);
    free(s);
}

/* `usual`: how every key of ours begins. `ends`: of the caller's, with a place for each partition. */
sieve *open_sieve(
    const uint8_t *usual, int32_t usual_size, int32_t values, int64_t *ends, int32_t partitions, int32_t most,
    int64_t most_bytes
) {
    sieve *s = calloc(1, sizeof *s + (size_t)usual_size);
    if (!s) return NULL;
    memcpy(s->usual, usual, (size_t)usual_size);
    s->usual_size = usual_size;
    s->values = values;
    s->ends = ends, s->partitions = partitions;
    s->most = most, s->most_bytes = most_bytes;
    s->capacity = SMALLEST_TABLE;
    s->table = calloc(SMALLEST_TABLE, sizeof *s->table);
    if (!s->table) close_sieve(s), s = NULL;
    return s;
}

static uint64_t hash_of(int32_t partition, const uint8_t *key, size_t size) {
    uint64_t hash = (uint64_t)partition * 0x9E3779B97F4A7C15u + size, word;
    for (; size >= 8; key += 8, size -= 8) {
        memcpy(&word, key, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    word = 0;
    memcpy(&word, key, size);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

/* Where the number of a key is, or would be. */
static int32_t *place_of(const sieve *s, uint64_t hash, int32_t partition, const uint8_t *key, size_t size) {
    int32_t at = (int32_t)(hash & (uint64_t)(s->capacity - 1));
    for (; s->table[at]; at = (at + 1) & (s->capacity - 1)) {
        const entry *e = s->kept[s->table[at] - 1];
        const head *h = (const head *)e->bytes;
        if (e->hash == hash && h->partition == partition && (size_t)h->key_size == size &&
            !memcmp(e->bytes + sizeof *h, key, size))
            break;
    }
    return s->table + at;
}

static int kind_of(const sieve *s, const uint8_t *key, size_t size) {
    size_t at, begin;
    if (!key) return ODD;
    if (size >= (size_t)s->usual_size && !memcmp(key, s->usual, (size_t)s->usual_size)) return OURS;
    if (size < 4 || key[0] != '[' || key[1] != '"') return ODD;
    for (at = 2; at < size && key[at] != '"' && key[at] != '\\' && key[at] >= ' ';) at++;
    begin = at + 2;
    if (begin > size || key[at] != '"' || key[at + 1] != ',') return ODD;
    /* Ours, differently spelled. */
    return begin <= (size_t)s->usual_size && !memcmp(key, s->usual, begin) ? ODD : FOREIGN;
}

static int has_room(void **array, int32_t *room, int32_t wanted, size_t size) {
    int32_t more = *room ? *room * 2 : 256;
    void *moved;
    if (wanted <= *room) return 1;
    moved = realloc(*array, (size_t)more * size);
    if (moved) *array = moved, *room = more;
    return moved != NULL;
}

static int table_has_room(sieve *s) {
    int32_t each, capacity = s->capacity * 2, *table, *former = s->table;
    if (s->count < s->capacity / 2) return 1;
    table = calloc((size_t)capacity, sizeof *table);
    if (!table) return 0;
    s->table = table;
    for (each = 0; each < s->capacity; each++)
        if (former[each]) {
            int32_t at = (int32_t)(s->kept[former[each] - 1]->hash & (uint64_t)(capacity - 1));
            while (table[at]) at = (at + 1) & (capacity - 1);
            table[at] = former[each];
        }
    s->capacity = capacity;
    free(former);
    return 1;
}

static int scratch(sieve *s, const void *bytes, size_t size) {
    while (s->scratch_room < s->scratched + (int64_t)size) {
        int64_t room = s->scratch_room ? s->scratch_room * 2 : 1024;
        uint8_t *moved = realloc(s->scratch, (size_t)room);
        if (!moved) return 0;
        s->scratch = moved, s->scratch_room = room;
    }
    if (size) memcpy(s->scratch + s->scratched, bytes, size);
    s->scratched += (int64_t)size;
    return 1;
}

/* Keeps a message with the headers in `scratch`; 0 without memory. */
static int keep(sieve *s, const message *m, int kind, int64_t time, int32_t stamp) {
    int values = s->values || kind != OURS;
    head h = {m->offset, time, m->partition, m->err, stamp, m->key ? (int32_t)m->key_size : NONE, NONE, 0};
    int64_t key_size = m->key ? (int64_t)m->key_size : 0, value_size = 0, size;
    int replaceable = kind == OURS;
    uint64_t hash = 0;
    int32_t number = 0, *place = NULL;
    entry *e = NULL;
    uint8_t *to;
    if (values && m->payload) h.value_size = (int32_t)(value_size = (int64_t)m->size);
    if (values) h.headers_size = (int32_t)s->scratched;
    size = (int64_t)sizeof h + key_size + value_size + h.headers_size;
    if (size > INT32_MAX / 2 || !has_room((void **)&s->kept, &s->room, s->count + 1, sizeof *s->kept)) return 0;
    if (replaceable) {
        if (!table_has_room(s)) return 0;
        hash = hash_of(m->partition, m->key, m->key_size);
        place = place_of(s, hash, m->partition, m->key, m->key_size);
        number = *place;
    }
    if (number) e = s->kept[number - 1], s->size -= e->size;
    if (!e || e->room < size) {
        /* What changes is as long as before, or little longer. */
        int32_t room = (int32_t)size + 16;
        entry *moved = realloc(e, sizeof *e + (size_t)room);
        if (!moved) return 0;
        e = moved, e->room = room;
        if (!number) {
            number = ++s->count;
            if (place) *place = number;
        }
        s->kept[number - 1] = e;
    }
    e->hash = hash, e->turn = s->turn++, e->size = (int32_t)size;
    s->size += size;
    to = e->bytes;
    memcpy(to, &h, sizeof h), to += sizeof h;
    if (key_size) memcpy(to, m->key, (size_t)key_size), to += key_size;
    if (value_size) memcpy(to, m->payload, (size_t)value_size), to += value_size;
    if (h.headers_size) memcpy(to, s->scratch, (size_t)h.headers_size);
    return 1;
}

static int took_headers(sieve *s, const message *m) {
    void *headers;
    const char *name;
    const void *value;
    size_t size, number;
    if (librdkafka.message_headers(m, &headers)) return 1;
    for (number = 0; !librdkafka.header_get_all(headers, number, &name, &value, &size); number++) {
        int32_t sizes[2] = {(int32_t)strlen(name), value ? (int32_t)size : NONE};
        if (!scratch(s, sizes, sizeof sizes) || !scratch(s, name, (size_t)sizes[0])) return 0;
        if (value && !scratch(s, value, size)) return 0;
    }
    return 1;
}

static void reached(sieve *s, const message *m) {
    if (m->partition >= 0 && m->partition < s->partitions && s->ends[m->partition] <= m->offset)
        s->ends[m->partition] = m->offset + 1;
}

static int take(sieve *s, const message *m) {
    int kind, stamp = 0;
    int64_t time = 0;
    s->scratched = 0;
    reached(s, m);
    kind = kind_of(s, m->key, m->key_size);
    if (kind == FOREIGN) return 1;
    if (s->values || kind != OURS) {
        time = librdkafka.message_timestamp(m, &stamp);
        if (!took_headers(s, m)) return 0;
    }
    return keep(s, m, kind, time, stamp);
}

/* The end of a partition, or what is wrong with it. */
static int take_error(sieve *s, void *event) {
    message m;
    const char *text = librdkafka.event_error_string(event);
    topic_partition *place = librdkafka.event_topic_partition(event);
    memset(&m, 0, sizeof m);
    m.err = librdkafka.event_error(event);
    m.partition = place ? place->partition : NONE;
    m.offset = place ? place->offset : NONE;
    if (place) librdkafka.topic_partition_destroy(place);
    if (text) m.payload = (void *)(uintptr_t)text, m.size = strlen(text);
    s->scratched = 0;
    s->events++;
    return keep(s, &m, ODD, 0, 0);
}

static int take_event(sieve *s, void *event) {
    const message *m;
    switch (librdkafka.event_type(event)) {
    case EVENT_FETCH:
        while ((m = librdkafka.event_message_next(event)))
            if (!take(s, m)) return 0;
        return 1;
    case EVENT_ERROR: return take_error(s, event);
    default: return 1;
    }
}

/* As a message that has come, with its headers as they are kept; for those who have no broker. */
int32_t offer(
    sieve *s, int32_t partition, int64_t offset, const uint8_t *key, int32_t key_size, const uint8_t *value,
    int32_t value_size, const uint8_t *headers, int32_t headers_size, int64_t time, int32_t stamp, int32_t error
) {
    message m;
    int kind;
    memset(&m, 0, sizeof m);
    m.partition = partition, m.offset = offset, m.err = error;
    if (key_size >= 0) m.key = (void *)(uintptr_t)key, m.key_size = (size_t)key_size;
    if (value_size >= 0) m.payload = (void *)(uintptr_t)value, m.size = (size_t)value_size;
    s->scratched = 0;
    if (!scratch(s, headers, (size_t)headers_size)) return 0;
    if (error) {
        s->events++;
        return keep(s, &m, ODD, 0, 0);
    }
    reached(s, &m);
    kind = kind_of(s, m.key, m.key_size);
    return kind == FOREIGN || keep(s, &m, kind, time, stamp);
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int is_full(const sieve *s) { return s->count >= s->most || s->size >= s->most_bytes; }

/* Reads on for `spell_ms`, but no longer than something is there, unless it `waits`, and than until an event has come or
 * there is enough to hand over. Returns how many messages came, or NONE without memory. */
int64_t read_queue(sieve *s, void *queue, int32_t spell_ms, int32_t waits) {
    enum { UNTIL_THE_CLOCK = 256 };
    int64_t count = 0, end = now_ms() + spell_ms, left = spell_ms;
    void *event;
    int took = 1;
    while (took && !s->events && !is_full(s) && left > 0) {
        if (!(event = librdkafka.queue_poll(queue, 0))) {
            if (!waits || (left = end - now_ms()) <= 0) break;
            if (!(event = librdkafka.queue_poll(queue, (int)left))) break;
        }
        took = take_event(s, event);
        librdkafka.event_destroy(event);
        if (!(++count % UNTIL_THE_CLOCK)) left = end - now_ms();
    }
    return took ? count : NONE;
}

static int by_turn(const void *one, const void *other) {
    const entry *a = *(entry *const *)one, *b = *(entry *const *)other;
    return (a->turn > b->turn) - (a->turn < b->turn);
}

int64_t kept_size(const sieve *s) { return s->size; }

/* All that is kept, in order, to `kept_size` bytes; what comes next begins anew. */
void drain(sieve *s, uint8_t *to) {
    int32_t each;
    if (s->count > 1) qsort(s->kept, (size_t)s->count, sizeof *s->kept, by_turn);
    for (each = 0; each < s->count; each++) {
        memcpy(to, s->kept[each]->bytes, (size_t)s->kept[each]->size);
        to += s->kept[each]->size;
        free(s->kept[each]);
    }
    memset(s->table, 0, (size_t)s->capacity * sizeof *s->table);
    s->count = s->events = 0;
    s->size = 0;
}

/* One queue for partitions that are not assigned yet. */
void *open_queue(void *client, const char *topic, const int32_t *partitions, int32_t count) {
    void *queue = librdkafka.queue_new(client);
    while (queue && count--) {
        void *of = librdkafka.queue_get_partition(client, topic, partitions[count]);
        if (!of) continue;
        librdkafka.queue_forward(of, queue);
        librdkafka.queue_destroy(of);
    }
    return queue;
}

void close_queue(void *queue) {
    void *left;
    while ((left = librdkafka.queue_poll(queue, 0))) librdkafka.event_destroy(left);
    librdkafka.queue_destroy(queue);
}

/* Blocks of records to librdkafka, and what became of each record, without an object of Python's for any of them.
 *
 * librdkafka loads this library as one of its plugins (`plugin.library.paths`), which is the way that it offers to reach
 * a client that somebody else has made: `conf_init` asks to be told of the client (`on_new`), and of a producer's the end
 * of every record (`on_acknowledgement`).
 */
#include "librdkafka.h"
#include <stdlib.h>
#include <string.h>

struct librdkafka librdkafka;

enum { OF_TOPIC = 2, OF_PARTITION = 3, OF_VALUE = 4, OF_KEY = 5, OF_FLAGS = 7, OF_HEADER = 9 };

static const char NAME[] = "scylla-cdc";

enum { CONSUMER = 1 };
enum { COPY = 2, ANY_PARTITION = -1, PURGED_IN_QUEUE = -152, PURGED_IN_FLIGHT = -151, QUEUE_FULL = -184 };
/* Of a record: where key, value and headers are, and how long. */
enum { RECORD_WORDS = 6, TOMBSTONE = -1 };
enum { LONGEST_TOPIC = 256, LONGEST_KEY = 1024 };

/* Of one client. It is kept for good: reports may come until the client's last thread has ended, and nobody says when
 * that is. There are few clients. */
typedef struct {
    void *client;
    int64_t delivered;
    int64_t failed;
    int32_t claimed; /* somebody writes the first failure down */
    int32_t told;    /* it is written down */
    int32_t error;
    int32_t key_size; /* -1: no key */
    char topic[LONGEST_TOPIC];
    uint8_t key[LONGEST_KEY];
} producer;

static producer *newest;
static void *newest_consumer;

static int acknowledged(void *client, message *it, void *opaque) {
    producer *p = opaque;
    (void)client;
    if (!it->err) {
        __sync_fetch_and_add(&p->delivered, 1);
        return 0;
    }
    /* A record that was purged is the echo of an abort, never its cause. */
    if (it->err == PURGED_IN_QUEUE || it->err == PURGED_IN_FLIGHT) return 0;
    if (__sync_bool_compare_and_swap(&p->claimed, 0, 1)) {
        const char *name = it->topic ? librdkafka.topic_name(it->topic) : "";
        strncpy(p->topic, name, LONGEST_TOPIC - 1);
        p->key_size = it->key ? (int32_t)(it->key_size < LONGEST_KEY ? it->key_size : LONGEST_KEY) : -1;
        if (p->key_size > 0) memcpy(p->key, it->key, (size_t)p->key_size);
        p->error = it->err;
        __sync_synchronize();
        p->told = 1;
    }
    __sync_fetch_and_add(&p->failed, 1);
    return 0;
}

static int made(void *client, const void *conf, void *opaque, char *error, size_t size) {
    producer *p;
    (void)conf, (void)opaque, (void)error, (void)size;
    if (librdkafka.type(client) == CONSUMER) {
        newest_consumer = client;
        return 0;
    }
    newest = NULL;
    if (!(p = calloc(1, sizeof *p))) return 0;
    p->client = client;
    if (librdkafka.interceptor_add_on_acknowledgement(client, NAME, acknowledged, p)) free(p);
    else newest = p;
    return 0;
}

/* librdkafka calls it for each configuration that names this library as its plugin. */
int conf_init(void *conf, void **opaque, char *error, size_t size) {
    (void)opaque, (void)error, (void)size;
    if (librdkafka.conf_interceptor_add_on_new) librdkafka.conf_interceptor_add_on_new(conf, NAME, made, NULL);
    return 0;
}

void set_librdkafka(void *const *functions) { memcpy(&librdkafka, functions, sizeof librdkafka); }

/* The client that was made last, for whoever made it, and nobody else: the caller sees to it that only one is made at a
 * time. */
producer *take_newest(void) {
    producer *p = newest;
    newest = NULL;
    return p;
}

void *take_newest_consumer(void) {
    void *client = newest_consumer;
    newest_consumer = NULL;
    return client;
}

/* Before the next transaction: what failed in the last one is over. */
void forget_failure(producer *p) {
    p->told = 0;
    __sync_synchronize();
    p->claimed = 0;
}

/* All records of a block to one topic, in order, by the partitioner. Returns how many were taken, from the first; what
 * stopped it is in `error`. A block of which some were taken behind one that was not is `broken`. Values that are not
 * `copied` are read until the last of these records is reported. */
int32_t produce(
    producer *p, const char *topic, const uint8_t *bytes, const int32_t *records, int32_t from, int32_t to,
    void *room, int32_t copied, int32_t *error, int32_t *broken
) {
    message *messages = room;
    int32_t count = to - from, each, taken = 0;
    void *handle = librdkafka.topic_new(p->client, topic, NULL);
    *error = *broken = 0;
    if (!handle) {
        *error = librdkafka.last_error();
        return 0;
    }
    memset(messages, 0, (size_t)count * sizeof *messages);
    for (each = 0; each < count; each++) {
        const int32_t *record = records + RECORD_WORDS * (from + each);
        messages[each].topic = handle;
        messages[each].partition = ANY_PARTITION;
        if (record[1] >= 0) {
            messages[each].key = (void *)(uintptr_t)(bytes + record[0]);
            messages[each].key_size = (size_t)record[1];
        }
        if (record[3] >= 0) {
            messages[each].payload = (void *)(uintptr_t)(bytes + record[2]);
            messages[each].size = (size_t)record[3];
        }
    }
    librdkafka.produce_batch(handle, ANY_PARTITION, copied ? COPY : 0, messages, count);
    while (taken < count && !messages[taken].err) taken++;
    if (taken < count) *error = messages[taken].err;
    for (each = taken; each < count; each++) *broken |= !messages[each].err;
    librdkafka.topic_destroy(handle);
    return taken;
}

/* What every record with a value has. */
typedef struct {
    const char *name;
    const char *value;
    int64_t size;
} header;

enum { MOST_HEADERS = 32 };

static void add_header(argument *to, const char *name, const void *value, int64_t size) {
    to->kind = OF_HEADER;
    to->is.header.name = name;
    to->is.header.value = value;
    to->is.header.size = size;
}

/* As `produce`, for records with headers: librdkafka takes them one by one, and so never a later one without those in
 * front of it. `names`: the text that a record's own headers have their names in. */
int32_t produce_with_headers(
    producer *p, const char *topic, const uint8_t *bytes, const int32_t *records, int32_t from, int32_t to,
    const char *names, const header *headers, int32_t header_count, int32_t copied, int32_t *error
) {
    argument arguments[5 + MOST_HEADERS];
    int32_t taken;
    void *handle = librdkafka.topic_new(p->client, topic, NULL);
    *error = 0;
    if (!handle) {
        *error = librdkafka.last_error();
        return 0;
    }
    memset(arguments, 0, sizeof arguments);
    for (taken = 0; taken < to - from; taken++) {
        const int32_t *record = records + RECORD_WORDS * (from + taken);
        const uint8_t *own = bytes + record[4], *own_end = own + record[5];
        void *failed;
        int each, count = 5;
        arguments[0].kind = OF_TOPIC;
        arguments[0].is.pointer = handle;
        arguments[1].kind = OF_PARTITION;
        arguments[1].is.number = ANY_PARTITION;
        arguments[2].kind = OF_FLAGS;
        arguments[2].is.number = copied ? COPY : 0;
        arguments[3].kind = OF_KEY;
        arguments[3].is.bytes.at = record[1] < 0 ? NULL : (void *)(uintptr_t)(bytes + record[0]);
        arguments[3].is.bytes.size = record[1] < 0 ? 0 : (size_t)record[1];
        arguments[4].kind = OF_VALUE;
        arguments[4].is.bytes.at = record[3] < 0 ? NULL : (void *)(uintptr_t)(bytes + record[2]);
        arguments[4].is.bytes.size = record[3] < 0 ? 0 : (size_t)record[3];
        while (own < own_end && count < 5 + MOST_HEADERS) {
            int32_t of_name, size;
            memcpy(&of_name, own, 4);
            memcpy(&size, own + 4, 4);
            add_header(&arguments[count++], names + of_name, size < 0 ? NULL : own + 8, size);
            own += 8 + (size < 0 ? 0 : size);
        }
        for (each = 0; record[3] != TOMBSTONE && each < header_count && count < 5 + MOST_HEADERS; each++, count++)
            add_header(&arguments[count], headers[each].name, headers[each].value, headers[each].size);
        failed = librdkafka.produceva(p->client, arguments, (size_t)count);
        if (failed) {
            *error = librdkafka.error_code(failed);
            librdkafka.error_destroy(failed);
            break;
        }
    }
    librdkafka.topic_destroy(handle);
    return taken;
}

int64_t message_size(void) { return (int64_t)sizeof(message); }

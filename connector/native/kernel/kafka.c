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
/* Kafka's word for records that do not follow those before them. */
enum { OUT_OF_ORDER = 45 };
/* Of a record: where key, value and headers are, and how long. */
enum { RECORD_WORDS = 6, TOMBSTONE = -1 };
enum { LONGEST_TOPIC = 256, LONGEST_KEY = 1024 };
/* Of a topic with more, each partition would get too few records of a block. */
enum { MOST_PARTITIONS = 128 };

/* Of one topic, what librdkafka knows when it has a record of a block partitioned. Kept as long as its client. */
typedef struct known_topic {
    struct known_topic *next;
    int32_t partitions; /* 0: it has not been asked */
    char name[LONGEST_TOPIC];
} known_topic;

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
    known_topic *topics;
} producer;

static producer *newest;
static void *newest_consumer;

/* See `SKIPPED` in delivery/failures.py. */
static int is_skipped(const message *it) { return !it->err && it->offset < 0; }

static int acknowledged(void *client, message *it, void *opaque) {
    producer *p = opaque;
    const int error = is_skipped(it) ? OUT_OF_ORDER : it->err;
    (void)client;
    if (!error) {
        __sync_fetch_and_add(&p->delivered, 1);
        return 0;
    }
    /* A record that was purged is the echo of an abort, never its cause. */
    if (error == PURGED_IN_QUEUE || error == PURGED_IN_FLIGHT) return 0;
    if (__sync_bool_compare_and_swap(&p->claimed, 0, 1)) {
        const char *name = it->topic ? librdkafka.topic_name(it->topic) : "";
        strncpy(p->topic, name, LONGEST_TOPIC - 1);
        p->key_size = it->key ? (int32_t)(it->key_size < LONGEST_KEY ? it->key_size : LONGEST_KEY) : -1;
        if (p->key_size > 0) memcpy(p->key, it->key, (size_t)p->key_size);
        p->error = error;
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

/* The partitioner of topics of blocks: Java's, which every client of ours has, and it remembers how many there are. */
static int32_t by_key(
    const void *topic, const void *key, size_t size, int32_t partitions, void *of_topic, void *of_message
) {
    ((known_topic *)of_topic)->partitions = partitions;
    return librdkafka.partition_of(topic, key, size, partitions, NULL, of_message);
}

static known_topic *known(producer *p, const char *name) {
    known_topic *at = p->topics;
    while (at && strcmp(at->name, name)) at = at->next;
    if (at || strlen(name) >= LONGEST_TOPIC || !(at = calloc(1, sizeof *at))) return at;
    strcpy(at->name, name);
    at->next = p->topics;
    return p->topics = at;
}

/* librdkafka's handle of a topic. Whoever first asks for it decides on its partitioner. */
static void *handle_of(producer *p, const char *name, known_topic *topic) {
    void *conf = NULL;
    if (topic && !topic->partitions && (conf = librdkafka.default_topic_conf_dup(p->client))) {
        librdkafka.topic_conf_set_partitioner_cb(conf, by_key);
        librdkafka.topic_conf_set_opaque(conf, topic);
    }
    return librdkafka.topic_new(p->client, name, conf);
}

static void fill(message *to, const uint8_t *bytes, const int32_t *record, int32_t partition) {
    memset(to, 0, sizeof *to);
    to->partition = partition;
    if (record[1] >= 0) {
        to->key = (void *)(uintptr_t)(bytes + record[0]);
        to->key_size = (size_t)record[1];
    }
    if (record[3] >= 0) {
        to->payload = (void *)(uintptr_t)(bytes + record[2]);
        to->size = (size_t)record[3];
    }
}

/* Records by partition, in order within each: what is given to librdkafka for one partition at once does not take the
 * locks of topic, partition and transaction for every record. */
static void sort(
    void *handle, const uint8_t *bytes, const int32_t *records, int32_t count, int32_t partitions, message *to,
    int32_t *of_record
) {
    int32_t ends[MOST_PARTITIONS + 1] = {0}, each;
    for (each = 0; each < count && partitions; each++) {
        const int32_t *record = records + RECORD_WORDS * each;
        if (record[1] < 0) partitions = 0; /* librdkafka chooses one */
        else if (partitions > 1) of_record[each] = librdkafka.partition_of(
            handle, bytes + record[0], (size_t)record[1], partitions, NULL, NULL);
        else of_record[each] = 0;
        if (partitions) ends[of_record[each] + 1]++;
    }
    if (!partitions) {
        for (each = 0; each < count; each++) fill(to + each, bytes, records + RECORD_WORDS * each, ANY_PARTITION);
        return;
    }
    for (each = 1; each < partitions; each++) ends[each] += ends[each - 1];
    for (each = 0; each < count; each++)
        fill(to + ends[of_record[each]]++, bytes, records + RECORD_WORDS * each, of_record[each]);
}

/* All records of a block to one topic, `from` those that were not taken before. Returns how many were taken; what
 * stopped it is in `error`. A block of which some were taken behind one that was not is `broken`. Values that are not
 * `copied` are read until the last of these records is reported. `room`, as large as `room_of` says, is left as it is
 * from call to call of one block. */
int32_t produce(
    producer *p, const char *name, const uint8_t *bytes, const int32_t *records, int32_t from, int32_t count,
    void *room, int32_t copied, int32_t *error, int32_t *broken
) {
    message *messages = room;
    int32_t at = from, end, each;
    known_topic *topic = known(p, name);
    void *handle = handle_of(p, name, topic);
    *error = *broken = 0;
    if (!handle) {
        *error = librdkafka.last_error();
        return 0;
    }
    if (!from) {
        /* The first record asks the partitioner, by which librdkafka tells how many partitions there are now. */
        if (topic) topic->partitions = 0;
        fill(messages, bytes, records, ANY_PARTITION);
    }
    for (; at < count; at = end) {
        for (end = at + 1; at && end < count && messages[end].partition == messages[at].partition;) end++;
        librdkafka.produce_batch(handle, messages[at].partition, copied ? COPY : 0, messages + at, end - at);
        while (at < end && !messages[at].err) at++;
        if (at < end) {
            *error = messages[at].err;
            for (each = at; each < end; each++) *broken |= !messages[each].err;
            break;
        }
        if (end == 1) {
            int32_t partitions = topic && topic->partitions <= MOST_PARTITIONS ? topic->partitions : 0;
            int32_t *of_record = (int32_t *)(messages + count);
            sort(handle, bytes, records + RECORD_WORDS, count - 1, partitions, messages + 1, of_record);
        }
    }
    librdkafka.topic_destroy(handle);
    return at - from;
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

/* What `produce` needs for a block of so many records. */
int64_t room_of(int64_t count) { return count * (int64_t)(sizeof(message) + sizeof(int32_t)); }

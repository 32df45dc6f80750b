/* What is used of librdkafka. Its functions are handed over by Python, so nothing is linked; the declarations are those of
 * rdkafka.h, whose layout is part of its stable interface.
 */
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int err;
    void *topic;
    int32_t partition;
    void *payload;
    size_t size;
    void *key;
    size_t key_size;
    int64_t offset;
    void *private_;
} message;

typedef struct {
    char *topic;
    int32_t partition;
    int64_t offset;
    void *metadata;
    size_t metadata_size;
    void *opaque;
    int err;
    void *private_;
} topic_partition;

/* An argument of `rd_kafka_produceva`. */
typedef struct {
    int kind;
    union {
        void *pointer;
        int32_t number;
        struct {
            void *at;
            size_t size;
        } bytes;
        struct {
            const char *name;
            const void *value;
            int64_t size;
        } header;
        char reserved[64];
    } is;
} argument;

typedef int on_new(void *client, const void *conf, void *opaque, char *error, size_t size);
typedef int on_acknowledgement(void *client, message *acknowledged, void *opaque);
typedef int32_t partitioner(
    const void *topic, const void *key, size_t size, int32_t partitions, void *of_topic, void *of_message);

/* In the order of `FUNCTIONS` in librdkafka.py. */
extern struct librdkafka {
    int (*conf_interceptor_add_on_new)(void *conf, const char *name, on_new *call, void *opaque);
    int (*interceptor_add_on_acknowledgement)(void *client, const char *name, on_acknowledgement *call, void *opaque);
    const char *(*topic_name)(const void *topic);
    void *(*topic_new)(void *client, const char *name, void *conf);
    void (*topic_destroy)(void *topic);
    int (*produce_batch)(void *topic, int32_t partition, int flags, message *messages, int count);
    int (*last_error)(void);
    void *(*produceva)(void *client, const argument *arguments, size_t count);
    int (*error_code)(const void *error);
    void (*error_destroy)(void *error);
    int (*type)(const void *client);
    void *(*queue_new)(void *client);
    void *(*queue_get_partition)(void *client, const char *topic, int32_t partition);
    void (*queue_forward)(void *from, void *to);
    void (*queue_destroy)(void *queue);
    void *(*queue_poll)(void *queue, int timeout_ms);
    int (*event_type)(const void *event);
    const message *(*event_message_next)(void *event);
    int (*event_error)(void *event);
    const char *(*event_error_string)(void *event);
    topic_partition *(*event_topic_partition)(void *event);
    void (*event_destroy)(void *event);
    void (*topic_partition_destroy)(topic_partition *place);
    int64_t (*message_timestamp)(const message *message, int *kind);
    int (*message_headers)(const message *message, void **headers);
    int (*header_get_all)(const void *headers, size_t number, const char **name, const void **value, size_t *size);
    void *(*default_topic_conf_dup)(void *client);
    void (*topic_conf_set_partitioner_cb)(void *conf, partitioner *call);
    void (*topic_conf_set_opaque)(void *conf, void *opaque);
    partitioner *partition_of;
} librdkafka;

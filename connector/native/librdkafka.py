"""librdkafka, as the Kafka client's binding has loaded it.

In: a kernel. Out: what the kernel is to clients of the binding, one of librdkafka's plugins; or ``NoKernel`` where
librdkafka is not known well enough.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import POINTER, c_void_p
from typing import Final

import confluent_kafka
from confluent_kafka import cimpl

from connector.native.library import Kernel, NoKernel

#: In the order of ``librdkafka.h``.
FUNCTIONS: Final = (
    "rd_kafka_conf_interceptor_add_on_new",
    "rd_kafka_interceptor_add_on_acknowledgement",
    "rd_kafka_topic_name",
    "rd_kafka_topic_new",
    "rd_kafka_topic_destroy",
    "rd_kafka_produce_batch",
    "rd_kafka_last_error",
    "rd_kafka_produceva",
    "rd_kafka_error_code",
    "rd_kafka_error_destroy",
    "rd_kafka_type",
    "rd_kafka_queue_new",
    "rd_kafka_queue_get_partition",
    "rd_kafka_queue_forward",
    "rd_kafka_queue_destroy",
    "rd_kafka_queue_poll",
    "rd_kafka_event_type",
    "rd_kafka_event_message_next",
    "rd_kafka_event_error",
    "rd_kafka_event_error_string",
    "rd_kafka_event_topic_partition",
    "rd_kafka_event_destroy",
    "rd_kafka_topic_partition_destroy",
    "rd_kafka_message_timestamp",
    "rd_kafka_message_headers",
    "rd_kafka_header_get_all",
    "rd_kafka_default_topic_conf_dup",
    "rd_kafka_topic_conf_set_partitioner_cb",
    "rd_kafka_topic_conf_set_opaque",
    "rd_kafka_msg_partitioner_murmur2_random",
)
#: The interface's major version that the kernel was written for.
_MAJOR: Final = 2

#: Held while a client is made that is to be met: the kernel knows only which was made last.
MAKING: Final = threading.Lock()


def hand_over(kernel: Kernel) -> str:
    """Tell the kernel where librdkafka's functions are. Returns what to have among ``plugin.library.paths``."""
    version, number = confluent_kafka.libversion()
    if number >> 24 != _MAJOR:
        raise NoKernel(f"librdkafka {version} is not known to take blocks")
    if ";" in str(kernel.path):
        raise NoKernel(f"librdkafka cannot load it from {kernel.path}")
    # The binding's module needs librdkafka: its functions are found where the module finds them.
    library = ctypes.CDLL(cimpl.__file__)
    try:
        functions = [ctypes.cast(getattr(library, name), c_void_p).value for name in FUNCTIONS]
    except AttributeError as error:
        raise NoKernel(f"the Kafka client does not show librdkafka's functions: {error}") from None
    kernel.function("set_librdkafka", None, POINTER(c_void_p))((c_void_p * len(functions))(*functions))
    return str(kernel.path)

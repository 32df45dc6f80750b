"""Tables of parts of ScyllaDB that the double has not (Raft, repair, compaction, views): they are there and empty.

In: nothing. Out: their definitions as ScyllaDB 2026.1 has them; `system_tables.ages` takes away what older lines lack.
"""

from __future__ import annotations

from typing import Final

from embedded.scylla.schema import Table
from embedded.scylla.system_tables.definition import spelled_tables

# Name: partition key | clustering key | static columns | other columns.
_TABLES: Final = """
system.IndexInfo: table_name text | index_name text | | value blob
system.batchlog: id uuid | |  | data blob, version int, written_at timestamp
system.batchlog_v2: version int, stage tinyint, shard int | written_at timestamp, id uuid | | data blob
system.built_views: keyspace_name text | view_name text
system.client_routes: connection_id text | host_id uuid | | address text, alternator_https_port int, alternator_port
  int, port int, tls_port int
system.commitlog_cleanups: shard int | position frozen<tuple<bigint, int>>, table_uuid uuid, start_token_exclusive
  bigint, end_token_inclusive bigint
system.compaction_history: id uuid | |  | bytes_in bigint, bytes_out bigint, columnfamily_name text, compacted_at
  timestamp, compaction_type text, keyspace_name text, rows_merged map<int, bigint>, shard_id int, sstables_in
  frozen<list<frozen<sstableinfo>>>, sstables_out frozen<list<frozen<sstableinfo>>>, started_at timestamp,
  total_tombstone_purge_attempt bigint, total_tombstone_purge_failure_due_to_overlapping_with_memtable bigint,
  total_tombstone_purge_failure_due_to_overlapping_with_uncompacting_sstable bigint
system.compactions_in_progress: id uuid | |  | columnfamily_name text, inputs set<int>, keyspace_name text
system.config: name text | |  | source text, type text, value text
system.corrupt_data: keyspace_name text, table_name text | id timeuuid | | clustering_key blob,
  frozen_mutation_fragment blob, mutation_fragment_kind text, origin text, partition_key blob, sstable_name text
system.dicts: name text | |  | data blob, origin uuid, timestamp timestamp
system.discovery: key text | ip_addr inet | | raft_server_id uuid
system.group0_history: key text | state_id timeuuid desc | | description text
system.hints: target_id uuid | hint_id timeuuid, message_version int | | mutation blob
system.large_cells: keyspace_name text, table_name text | sstable_name text, cell_size bigint desc, partition_key
  text, clustering_key text, column_name text | | collection_elements bigint, compaction_time timestamp
system.large_partitions: keyspace_name text, table_name text | sstable_name text, partition_size bigint desc,
  partition_key text | | compaction_time timestamp, dead_rows bigint, range_tombstones bigint, rows bigint
system.large_rows: keyspace_name text, table_name text | sstable_name text, row_size bigint desc, partition_key text,
  clustering_key text | | compaction_time timestamp
system.paxos: row_key blob | cf_id uuid | | most_recent_commit blob, most_recent_commit_at timeuuid, promise timeuuid,
  proposal blob, proposal_ballot timeuuid
system.peer_events: peer inet | |  | hints_dropped map<uuid, int>
system.raft: group_id timeuuid | index bigint | commit_idx bigint, snapshot_id uuid, vote uuid, vote_term bigint |
  data blob, term bigint
system.raft_snapshot_config: group_id timeuuid | disposition ascii, server_id uuid | | can_vote boolean
system.raft_snapshots: group_id timeuuid | |  | idx bigint, snapshot_id uuid, term bigint
system.raft_state: group_id timeuuid | disposition ascii, server_id uuid | | can_vote boolean
system.range_xfers: token_bytes blob | |  | requested_at timestamp
system.repair_history: table_uuid uuid | repair_time timestamp, repair_uuid uuid, range_start bigint, range_end bigint
  | keyspace_name text, table_name text
system.repair_tasks: task_uuid uuid | operation text, first_token bigint, last_token bigint | table_uuid uuid |
  timestamp timestamp
system.role_attributes: role text | name text | | value text
system.role_members: role text | member text
system.role_permissions: role text | resource text | | permissions set<text>
system.runtime_info: group text | item text | | value text
system.scylla_table_schema_history: cf_id uuid | schema_version uuid, column_name text | | clustering_order text,
  column_name_bytes blob, kind text, position int, type text
system.scylla_views_builds_in_progress: keyspace_name text | view_name text, cpu_id int | | first_token text,
  generation_number int, next_token text
system.service_levels_v2: service_level text | |  | shares int, timeout duration, workload_type text
system.size_estimates: keyspace_name text | table_name text, range_start text, range_end text | | mean_partition_size
  bigint, partitions_count bigint
system.snapshots: keyspace_name text | table_name text, snapshot_name text | | live bigint, total bigint
system.sstable_activity: keyspace_name text, columnfamily_name text, generation int | |  | rate_120m double, rate_15m
  double
system.topology_requests: id timeuuid | |  | done boolean, end_time timestamp, error text, initiating_host uuid,
  new_keyspace_rf_change_data frozen<map<text, text>>, new_keyspace_rf_change_ks_name text, request_type text,
  start_time timestamp, truncate_table_id uuid
system.truncated: table_uuid uuid | shard int | truncated_at timestamp | position int, segment_id bigint
system.view_build_status_v2: keyspace_name text, view_name text | host_id uuid | | status text
system.view_building_tasks: key text | id timeuuid | | aborted boolean, base_id uuid, host_id uuid, last_token bigint,
  shard int, type text, view_id uuid
system.views_builds_in_progress: keyspace_name text | view_name text | | generation_number int, last_token text
system_distributed.service_levels: service_level text | |  | shares int, timeout duration, workload_type text
system_distributed.view_build_status: keyspace_name text, view_name text | host_id uuid | | status text
system_distributed_everywhere.cdc_generation_descriptions_v2: id uuid | range_end bigint | num_ranges int | ignore_msb
  tinyint, streams frozen<set<blob>>
system_traces.sessions: session_id uuid | | | client inet, command text, coordinator inet, duration int,
  parameters map<text, text>, request text, request_size int, response_size int, started_at timestamp, username text
system_traces.events: session_id uuid | event_id timeuuid | | activity text, scylla_parent_id bigint,
  scylla_span_id bigint, source inet, source_elapsed int, thread text
"""

IDLE_TABLES: Final[tuple[Table, ...]] = spelled_tables(_TABLES)

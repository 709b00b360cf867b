// The PersistentSubscriptions service, version 1.

export const persistentProto = `
syntax = "proto3";
package event_store.client.persistent_subscriptions;

message ReadReq {
  Options options = 1;
  Ack ack = 2;
  Nack nack = 3;
  message Options {
    StreamIdentifier stream_identifier = 1;
    string group_name = 2;
    int32 buffer_size = 3;
    UuidOption uuid_option = 4;
    Empty all = 5;
  }
  message Ack {
    bytes id = 1;
    repeated UUID ids = 2;
  }
  message Nack {
    bytes id = 1;
    repeated UUID ids = 2;
    int32 action = 3;
    string reason = 4;
  }
}
message ReadResp {
  ReadEvent event = 1;
  SubscriptionConfirmation subscription_confirmation = 2;
  message ReadEvent {
    RecordedEvent event = 1;
    RecordedEvent link = 2;
    optional uint64 commit_position = 3;
    Empty no_position = 4;
    optional int32 retry_count = 5;
    Empty no_retry_count = 6;
  }
  message SubscriptionConfirmation { string subscription_id = 1; }
}
message WriteReq {
  Options options = 1;
  message Options {
    StreamIdentifier stream_identifier = 1;
    string group_name = 2;
    Settings settings = 3;
    StreamOptions stream = 4;
    AllOptions all = 5;
  }
  message StreamOptions {
    StreamIdentifier stream_identifier = 1;
    optional uint64 revision = 2;
    Empty start = 3;
    Empty end = 4;
  }
  message AllOptions {
    Position position = 1;
    Empty start = 2;
    Empty end = 3;
    FilterOptions filter = 4;
    Empty no_filter = 5;
  }
  message Settings {
    bool resolve_links = 1;
    uint64 revision = 2;
    bool extra_statistics = 3;
    optional int64 message_timeout_ticks = 4;
    int32 max_retry_count = 5;
    optional int64 checkpoint_after_ticks = 6;
    int32 min_checkpoint_count = 7;
    int32 max_checkpoint_count = 8;
    int32 max_subscriber_count = 9;
    int32 live_buffer_size = 10;
    int32 read_batch_size = 11;
    int32 history_buffer_size = 12;
    int32 named_consumer_strategy = 13;
    optional int32 message_timeout_ms = 14;
    optional int32 checkpoint_after_ms = 15;
    string consumer_strategy = 16;
  }
}
message DeleteReq {
  Options options = 1;
  message Options {
    StreamIdentifier stream_identifier = 1;
    string group_name = 2;
    Empty all = 3;
  }
}
message GetInfoReq {
  Options options = 1;
  message Options {
    StreamIdentifier stream_identifier = 1;
    Empty all = 2;
    string group_name = 3;
  }
}
message GetInfoResp { SubscriptionInfo subscription_info = 1; }
message SubscriptionInfo {
  string event_source = 1;
  string group_name = 2;
  string status = 3;
  repeated ConnectionInfo connections = 4;
  int32 average_per_second = 5;
  int64 total_items = 6;
  int64 count_since_last_measurement = 7;
  string last_checkpointed_event_position = 8;
  string last_known_event_position = 9;
  bool resolve_link_tos = 10;
  string start_from = 11;
  int32 message_timeout_milliseconds = 12;
  bool extra_statistics = 13;
  int32 max_retry_count = 14;
  int32 live_buffer_size = 15;
  int32 buffer_size = 16;
  int32 read_batch_size = 17;
  int32 check_point_after_milliseconds = 18;
  int32 min_check_point_count = 19;
  int32 max_check_point_count = 20;
  int32 read_buffer_count = 21;
  int64 live_buffer_count = 22;
  int32 retry_buffer_count = 23;
  int32 total_in_flight_messages = 24;
  int32 outstanding_messages_count = 25;
  string named_consumer_strategy = 26;
  int32 max_subscriber_count = 27;
  int64 parked_message_count = 28;
  message ConnectionInfo {
    string from = 1;
    string username = 2;
    int32 average_items_per_second = 3;
    int64 total_items = 4;
    int64 count_since_last_measurement = 5;
    repeated Measurement observed_measurements = 6;
    int32 available_slots = 7;
    int32 in_flight_messages = 8;
    string connection_name = 9;
  }
  message Measurement {
    string key = 1;
    int64 value = 2;
  }
}
message ReplayParkedReq {
  Options options = 1;
  message Options {
    string group_name = 1;
    StreamIdentifier stream_identifier = 2;
    Empty all = 3;
    optional int64 stop_at = 4;
    Empty no_limit = 5;
  }
}
message ListReq {
  Options options = 1;
  message Options {
    Empty list_all_subscriptions = 1;
    StreamOption list_for_stream = 2;
  }
  message StreamOption {
    StreamIdentifier stream = 1;
    Empty all = 2;
  }
}
message ListResp { repeated SubscriptionInfo subscriptions = 1; }
`;

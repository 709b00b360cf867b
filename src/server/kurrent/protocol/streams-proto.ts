// The Streams service, version 1.

export const streamsProto = `
syntax = "proto3";
package event_store.client.streams;

message ReadReq {
  Options options = 1;
  message Options {
    StreamOptions stream = 1;
    AllOptions all = 2;
    int32 read_direction = 3;
    bool resolve_links = 4;
    optional uint64 count = 5;
    Empty subscription = 6;
    FilterOptions filter = 7;
    Empty no_filter = 8;
    UuidOption uuid_option = 9;
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
  }
}
message ReadResp {
  ReadEvent event = 1;
  SubscriptionConfirmation confirmation = 2;
  Checkpoint checkpoint = 3;
  StreamNotFound stream_not_found = 4;
  optional uint64 first_stream_position = 5;
  optional uint64 last_stream_position = 6;
  Position last_all_stream_position = 7;
  Progress caught_up = 8;
  Progress fell_behind = 9;
  message ReadEvent {
    RecordedEvent event = 1;
    RecordedEvent link = 2;
    optional uint64 commit_position = 3;
    Empty no_position = 4;
  }
  message SubscriptionConfirmation { string subscription_id = 1; }
  message Checkpoint {
    uint64 commit_position = 1;
    uint64 prepare_position = 2;
    Timestamp timestamp = 3;
  }
  message StreamNotFound { StreamIdentifier stream_identifier = 1; }
  message Progress {
    Timestamp timestamp = 1;
    optional int64 stream_revision = 2;
    Position position = 3;
  }
}
message ProposedMessage {
  UUID id = 1;
  map<string, string> metadata = 2;
  bytes custom_metadata = 3;
  bytes data = 4;
}
message AppendReq {
  Options options = 1;
  ProposedMessage proposed_message = 2;
  message Options {
    StreamIdentifier stream_identifier = 1;
    optional uint64 revision = 2;
    Empty no_stream = 3;
    Empty any = 4;
    Empty stream_exists = 5;
  }
}
message AppendResp {
  Success success = 1;
  WrongVersion wrong_expected_version = 2;
  message Success {
    optional uint64 current_revision = 1;
    Empty no_stream = 2;
    Position position = 3;
    Empty no_position = 4;
  }
  message WrongVersion {
    optional uint64 old_current_revision = 1;
    Empty old_no_stream = 2;
    optional uint64 old_expected_revision = 3;
    Empty old_any = 4;
    Empty old_stream_exists = 5;
    optional uint64 current_revision = 6;
    Empty current_no_stream = 7;
    optional uint64 expected_revision = 8;
    Empty expected_any = 9;
    Empty expected_stream_exists = 10;
    Empty expected_no_stream = 11;
  }
}
message BatchAppendReq {
  UUID correlation_id = 1;
  Options options = 2;
  repeated ProposedMessage proposed_messages = 3;
  bool is_final = 4;
  message Options {
    StreamIdentifier stream_identifier = 1;
    optional uint64 stream_position = 2;
    Empty no_stream = 3;
    Empty any = 4;
    Empty stream_exists = 5;
    Timestamp deadline_at = 6;
    Duration deadline_in = 7;
  }
}
message BatchAppendResp {
  UUID correlation_id = 1;
  Status error = 2;
  Success success = 3;
  StreamIdentifier stream_identifier = 4;
  optional uint64 stream_position = 5;
  Empty no_stream = 6;
  Empty any = 7;
  Empty stream_exists = 8;
  message Success {
    optional uint64 current_revision = 1;
    Empty no_stream = 2;
    Position position = 3;
    Empty no_position = 4;
  }
}
message DeleteReq { AppendReq.Options options = 1; }
message DeleteResp {
  Position position = 1;
  Empty no_position = 2;
}
`;

// Messages that all services share. Members of a `oneof` are optional fields here: the wire format is the same, and an
// absent member is undefined instead of zero.

export const sharedProto = `
syntax = "proto3";
package event_store.client;

message UUID {
  message Structured {
    int64 most_significant_bits = 1;
    int64 least_significant_bits = 2;
  }
  Structured structured = 1;
  optional string string = 2;
}
message Empty {}
message Timestamp {
  int64 seconds = 1;
  int32 nanos = 2;
}
message Duration {
  int64 seconds = 1;
  int32 nanos = 2;
}
message Any {
  string type_url = 1;
  bytes value = 2;
}
message Status {
  int32 code = 1;
  string message = 2;
  Any details = 3;
}
message StreamIdentifier { bytes stream_name = 3; }
message Position {
  uint64 commit_position = 1;
  uint64 prepare_position = 2;
}
message WrongExpectedVersion {
  optional uint64 current_stream_revision = 1;
  Empty current_no_stream = 2;
  optional uint64 expected_stream_position = 3;
  Empty expected_any = 4;
  Empty expected_stream_exists = 5;
  Empty expected_no_stream = 6;
}
message StreamDeleted { StreamIdentifier stream_identifier = 1; }
message MaximumAppendSizeExceeded { uint32 max_append_size = 1; }
message BadRequest { string message = 1; }
message RecordedEvent {
  UUID id = 1;
  StreamIdentifier stream_identifier = 2;
  uint64 stream_revision = 3;
  uint64 prepare_position = 4;
  uint64 commit_position = 5;
  map<string, string> metadata = 6;
  bytes custom_metadata = 7;
  bytes data = 8;
}
message Expression {
  string regex = 1;
  repeated string prefix = 2;
}
message FilterOptions {
  Expression stream_identifier = 1;
  Expression event_type = 2;
  optional uint32 max = 3;
  Empty count = 4;
  uint32 checkpoint_interval_multiplier = 5;
}
message UuidOption {
  Empty structured = 1;
  Empty string = 2;
}
`;

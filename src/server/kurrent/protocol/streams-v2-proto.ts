// The Streams service, version 2: appends to several streams at once, and its error details.

export const streamsV2Proto = `
syntax = "proto3";
package kurrentdb.protocol.v2.streams;

message Value {
  optional int32 null_value = 1;
  optional double number_value = 2;
  optional string string_value = 3;
  optional bool bool_value = 4;
  Struct struct_value = 5;
  ListValue list_value = 6;
}
message Struct { map<string, Value> fields = 1; }
message ListValue { repeated Value values = 1; }

message SchemaInfo {
  int32 format = 1;
  string name = 2;
  optional string id = 3;
}
message AppendRecord {
  optional string record_id = 1;
  map<string, Value> properties = 2;
  SchemaInfo schema = 3;
  bytes data = 4;
  string stream = 5;
}
message AppendRequest {
  string stream = 1;
  repeated AppendRecord records = 2;
  optional sint64 expected_revision = 3;
}
message AppendResponse {
  string stream = 1;
  sint64 stream_revision = 2;
  optional sint64 position = 3;
}
message AppendSessionResponse {
  repeated AppendResponse output = 1;
  sint64 position = 2;
}
message AppendRecordsRequest {
  repeated AppendRecord records = 1;
  repeated ConsistencyCheck checks = 2;
}
message ConsistencyCheck {
  StreamStateCheck stream_state = 1;
  message StreamStateCheck {
    string stream = 1;
    sint64 expected_state = 2;
  }
}
message AppendRecordsResponse {
  repeated StreamRevision revisions = 1;
  sint64 position = 2;
}
message StreamRevision {
  string stream = 1;
  sint64 revision = 2;
}

message StreamErrorDetails { string stream = 1; }
message StreamRevisionConflictErrorDetails {
  string stream = 1;
  sint64 expected_revision = 2;
  sint64 actual_revision = 3;
}
message AppendRecordSizeExceededErrorDetails {
  string stream = 1;
  string record_id = 2;
  int32 size = 3;
  int32 max_size = 4;
}
message AppendTransactionSizeExceededErrorDetails {
  int32 size = 1;
  int32 max_size = 2;
}
message AppendConsistencyViolationErrorDetails { repeated ConsistencyViolation violations = 1; }
message ConsistencyViolation {
  int32 check_index = 1;
  StreamStateViolation stream_state = 2;
  message StreamStateViolation {
    string stream = 1;
    sint64 expected_state = 2;
    sint64 actual_state = 3;
  }
}
message AccessDeniedErrorDetails {
  string operation = 1;
  optional string username = 2;
  optional string permission = 3;
}
`;

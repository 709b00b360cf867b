// Information about the server: its methods and the members of its cluster.

export const serverProto = `
syntax = "proto3";
package event_store.client.server;

message SupportedMethods {
  repeated SupportedMethod methods = 1;
  string event_store_server_version = 2;
}
message SupportedMethod {
  string method_name = 1;
  string service_name = 2;
  repeated string features = 3;
}
message ClusterInfo { repeated MemberInfo members = 1; }
message EndPoint {
  string address = 1;
  uint32 port = 2;
}
message MemberInfo {
  UUID instance_id = 1;
  int64 time_stamp = 2;
  int32 state = 3;
  bool is_alive = 4;
  EndPoint http_end_point = 5;
}
`;

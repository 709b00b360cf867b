// The table of all error codes. docs/errors.md is generated from it.

export interface ErrorCodeInfo {
  /** Whether the same call may succeed later without a change by the caller. */
  readonly retryable: boolean;
  readonly meaning: string;
  readonly remedy: string;
}

export const errorCodes = {
  NAME_INVALID: {
    retryable: false,
    meaning:
      'A name violates the grammar (event type, stream, key, subject, subscription, tenant, id).',
    remedy: 'Use the spelling that the message suggests, or the builder that it names.',
  },
  TENANT_UNKNOWN: {
    retryable: false,
    meaning: 'A tenant with a hyphen is not in the tenant directory.',
    remedy:
      'Add the tenant to the directory, and pass the directory to the builder and the parser.',
  },
  TENANT_OVERLAP: {
    retryable: false,
    meaning: 'One tenant key is a prefix of another, so some stream names would be ambiguous.',
    remedy:
      'Choose a tenant key that does not begin with another tenant key and a hyphen (core, core-eu).',
  },
  STREAM_AMBIGUOUS: {
    retryable: false,
    meaning: 'The stream name would parse to a different tenant than it was built with.',
    remedy: 'Choose another aggregate id, or rename the overlapping tenant.',
  },
  KEY_TOO_LONG: {
    retryable: false,
    meaning: 'A key or name has 256 characters or more.',
    remedy: 'Use a shorter id, or a hash of it.',
  },
  KEY_HOLDS_PERSONAL_DATA: {
    retryable: false,
    meaning:
      'An id that would become part of a key looks like an e-mail address or a phone number.',
    remedy: 'Use an opaque id (UUID or ULID), and keep the address in the payload.',
  },
  ENVELOPE_INVALID: {
    retryable: false,
    meaning: 'An event envelope does not match its schema; details.problems lists every path.',
    remedy: 'Fix the fields listed in details.problems.',
  },
  PAYLOAD_INVALID: {
    retryable: false,
    meaning: 'A payload does not match the schema of its event or command.',
    remedy: 'Fix the fields listed in details.problems.',
  },
  PAYLOAD_TOO_LARGE: {
    retryable: false,
    meaning: 'A payload exceeds the size limit.',
    remedy: 'Store large data elsewhere and reference it, or raise payloadBytesMax.',
  },
  PAYLOAD_NOT_JSON: {
    retryable: false,
    meaning:
      'A payload contains a value that JSON cannot represent (NaN, BigInt, function, cycle, …).',
    remedy: 'Convert the value at details.path before you create the event.',
  },
  SCHEMA_ASYNC: {
    retryable: false,
    meaning: 'A schema validates asynchronously; events and commands need synchronous validation.',
    remedy: 'Use a synchronous schema, and do lookups in the command handler.',
  },
  VERSION_CONFLICT: {
    retryable: true,
    meaning: 'The stream is at another revision than the append expected.',
    remedy:
      'Read the stream again, decide again, and append again; details.actual is the current revision.',
  },
  STREAM_DELETED: {
    retryable: false,
    meaning: 'The stream was deleted permanently (tombstone): it cannot be read or written.',
    remedy: 'Use another stream.',
  },
  TENANT_MISMATCH: {
    retryable: false,
    meaning: 'The tenant of an event differs from the tenant of its stream.',
    remedy:
      "Build the stream name with the event's tenant, and add a tenant with a hyphen to the directory before its first event.",
  },
  APPEND_INVALID: {
    retryable: false,
    meaning:
      'An append is empty, too large, contains an event id twice, or has impossible expectations.',
    remedy: 'Fix the append as the message says.',
  },
  POSITION_INVALID: {
    retryable: false,
    meaning: 'A value is not a valid position of the store.',
    remedy: 'Use positions exactly as the store returned them.',
  },
  FILTER_INVALID: {
    retryable: false,
    meaning: 'A filter is too large, or its pattern is not a linear-time regular expression.',
    remedy:
      'Write the pattern without back-references, and with look-ahead only after a literal beginning, or use prefixes.',
  },
  SUBJECT_FORGOTTEN: {
    retryable: false,
    meaning: 'The event contains personal data of a person whose data was erased.',
    remedy: 'Use a new subject id for the person.',
  },
  STORE_CLOSED: {
    retryable: false,
    meaning: 'The store was closed.',
    remedy: 'Open a new store.',
  },
  STORE_UNAVAILABLE: {
    retryable: true,
    meaning: 'The database of the store does not respond, is full, or rejected the operation.',
    remedy: 'Try again; details and cause contain the error of the database.',
  },
  STORE_CORRUPT: {
    retryable: false,
    meaning: 'Stored data is damaged.',
    remedy: 'Restore the database from a backup, and report the error.',
  },
  NOT_SUPPORTED: {
    retryable: false,
    meaning: 'The engine lacks the required capability.',
    remedy: 'Check the capabilities of the engine, or choose another engine.',
  },
  LIFECYCLE_STOPPED: {
    retryable: false,
    meaning: 'A component was stopped before its start had finished.',
    remedy: 'Start it again, or handle the error as a cancellation.',
  },
  ABORTED: {
    retryable: false,
    meaning: 'An AbortSignal cancelled the operation.',
    remedy: 'Nothing: the caller cancelled it.',
  },
  DRIVER_MISSING: {
    retryable: false,
    meaning: 'A required package is not installed.',
    remedy: 'Install the package named in the message.',
  },
  SERVER_UNAVAILABLE: {
    retryable: true,
    meaning: 'A server that a test needs could not be started.',
    remedy: 'Install the package named in the message, or read the log that it quotes.',
  },
  COMMAND_REJECTED: {
    retryable: false,
    meaning: 'A business rule rejected the command.',
    remedy: 'Read details.reason; the same command on the same state is rejected again.',
  },
  COMMAND_AMBIGUOUS: {
    retryable: false,
    meaning:
      'Several aggregates of the platform accept this command type; details.aggregates lists them.',
    remedy: 'Name the category of one as `aggregate`, such as banking.account.v2.',
  },
  COMMAND_UNKNOWN: {
    retryable: false,
    meaning: 'The command does not exist.',
    remedy: "Use a command of the aggregate's definition.",
  },
  COMMAND_KEY_REUSED: {
    retryable: false,
    meaning: 'The idempotency key was already used for another command, aggregate or payload.',
    remedy: 'Use a separate key for each command; details name the first use of the key.',
  },
  EVENT_UNKNOWN: {
    retryable: false,
    meaning: 'The aggregate does not list the type of a stored or decided event.',
    remedy: "List the event, upcast it, or set unknownEvents to 'skip'.",
  },
  EVENT_UNREADABLE: {
    retryable: false,
    meaning: 'An upcaster, its schema or evolve failed for a stored event.',
    remedy: 'Fix the function named in the cause; the stream itself is intact.',
  },
  AGGREGATE_INVALID: {
    retryable: false,
    meaning: 'The definition of an aggregate is inconsistent.',
    remedy: 'Fix the definition as the message says.',
  },
  AGGREGATE_BUSY: {
    retryable: true,
    meaning: 'Too many commands of this process are waiting for one aggregate.',
    remedy: 'Try again later, or distribute the work over more aggregates.',
  },
  SUBSCRIPTION_INVALID: {
    retryable: false,
    meaning:
      'The definition of a subscription is inconsistent, or does not match its stored state.',
    remedy: 'Fix the definition as the message says, or give the subscription a new version.',
  },
  SUBSCRIPTION_UNKNOWN: {
    retryable: false,
    meaning: 'The subscription does not exist.',
    remedy: 'Check the list of subscriptions; a subscription is listed after its first start.',
  },
  SUBSCRIPTION_RUNNING: {
    retryable: true,
    meaning: 'The subscription is running, so its checkpoint cannot be moved.',
    remedy: 'Pause the subscription, or stop the processes that run it.',
  },
  LEASE_LOST: {
    retryable: true,
    meaning: 'Another process has taken over the lease, so this process may not write.',
    remedy: 'Nothing: the new owner continues, and this process waits.',
  },
  CHECKPOINT_LOST: {
    retryable: false,
    meaning:
      'Redis has lost the checkpoint of a reactor, a saga or an outbox projector. It stops, because it would handle old events again.',
    remedy:
      'Run `millrace subscriptions reset <subscription> --to <position or time> --yes` with the position from which it continues.',
  },
  HANDLER_TIMEOUT: {
    retryable: true,
    meaning: 'A handler or a delivery attempt exceeded its time limit (timeoutMs).',
    remedy: 'Pass the signal on to everything that the handler awaits, or raise timeoutMs.',
  },
  DEAD_LETTER_UNKNOWN: {
    retryable: false,
    meaning: 'The dead letter does not exist.',
    remedy: 'Check the list of dead letters.',
  },
  DEAD_LETTER_CLOSED: {
    retryable: false,
    meaning: 'The dead letter was already replayed or discarded.',
    remedy: 'Nothing: details.status is its state.',
  },
  READ_MODEL_UNKNOWN: {
    retryable: false,
    meaning: 'No loaded module has this read model.',
    remedy: 'Use a read model of a projection in the configuration.',
  },
  READ_MODEL_INVALID: {
    retryable: false,
    meaning: 'A read model is inconsistent, or a document or query does not match its definition.',
    remedy: 'Fix the part named in the message.',
  },
  READ_MODEL_REBUILDING: {
    retryable: true,
    meaning: 'The documents of this read model were lost and are being restored from the events.',
    remedy: 'Retry later; `millrace projections status` shows the progress.',
  },
  DOCUMENT_FOREIGN: {
    retryable: false,
    meaning: 'An event of one stream would change a document of another stream.',
    remedy: 'Use separate document ids for each stream.',
  },
  CURSOR_INVALID: {
    retryable: false,
    meaning: 'A value is not a valid cursor of this list.',
    remedy: 'Pass the cursor of the previous page unchanged, with the same query.',
  },
  PROJECTION_INVALID: {
    retryable: false,
    meaning:
      'A projection is inconsistent, or the operation does not fit the state of its version.',
    remedy: 'Fix the definition, or run the step named in the message first.',
  },
  PROJECTION_UNKNOWN: {
    retryable: false,
    meaning: 'This version of the read model does not exist.',
    remedy: 'Check the status of the projections; a version is listed after its first start.',
  },
  PROJECTION_BUSY: {
    retryable: true,
    meaning: 'Another process is working on this projection.',
    remedy: 'Wait until it ends, or until its lease expires.',
  },
  WAIT_TIMEOUT: {
    retryable: true,
    meaning: 'A read model did not reach the position in time.',
    remedy: 'Check the lag of the projection, or wait longer.',
  },
  REACTOR_INVALID: {
    retryable: false,
    meaning: 'The definition of a reactor or a saga is inconsistent.',
    remedy: 'Fix the definition as the message says.',
  },
  SAGA_UNKNOWN: {
    retryable: false,
    meaning: 'The saga does not exist.',
    remedy: 'Check the list of sagas; the key is the value that correlateBy returned.',
  },
  SAGA_NOT_PARKED: {
    retryable: false,
    meaning: 'The saga is not parked, so it cannot be resumed or skipped.',
    remedy: 'Nothing: details.status is its state.',
  },
  BULK_COUNT_CHANGED: {
    retryable: false,
    meaning: 'Another number of failures matches than the bulk action was confirmed for.',
    remedy: 'Preview the action again, and start it with the new number (details.matched).',
  },
  ADDRESS_FORBIDDEN: {
    retryable: false,
    meaning: 'A URL points to a private network, to this machine, or to a reserved address.',
    remedy: 'Fix the URL, or allow the address range if the receiver belongs there.',
  },
  SIGNATURE_INVALID: {
    retryable: false,
    meaning:
      'A webhook is not signed with a known secret, or its timestamp is too far from the current time.',
    remedy: 'Respond with 401; details.reason is the reason, for your log.',
  },
  TRANSACTION_INVALID: {
    retryable: false,
    meaning: 'The transaction is invalid, has ended, or has an unexpected interface.',
    remedy: 'Pass the open transaction itself, through the adapter of its library.',
  },
  OUTBOX_INVALID: {
    retryable: false,
    meaning: 'An outbox message or a query of the ledger has an invalid field.',
    remedy: 'Fix the field named in the message; details.field contains it.',
  },
  OUTBOX_UNKNOWN: {
    retryable: false,
    meaning: 'The ledger has no message with this id.',
    remedy: 'Check the list of messages; sent messages are removed after their retention.',
  },
  BUS_INVALID: {
    retryable: false,
    meaning: 'A message, a group or a query of the bus has an invalid field.',
    remedy: 'Fix the field named in the message; details.field contains it.',
  },
  BUS_UNAVAILABLE: {
    retryable: true,
    meaning: 'The broker of the bus is unreachable, or rejected the operation.',
    remedy: 'Try again; publish with the same id, so that the message is not stored twice.',
  },
  BUS_CLOSED: {
    retryable: false,
    meaning: 'The bus was closed.',
    remedy: 'Open a new bus.',
  },
  BUS_GROUP_CONFLICT: {
    retryable: false,
    meaning: 'The group already exists with another subject or pattern.',
    remedy: 'Use another group name, or delete the group first.',
  },
  BUS_GROUP_UNKNOWN: {
    retryable: false,
    meaning: 'The consumer group does not exist.',
    remedy: 'Check the list of groups; a group is listed after its first use.',
  },
  BUS_STREAM_HELD: {
    retryable: true,
    meaning: 'A group has not acknowledged all messages of the stream.',
    remedy:
      'Wait until the groups in details.groups have acknowledged all messages, or set evenUnacked to delete the stream anyway.',
  },
  BUS_NO_REPLY: {
    retryable: true,
    meaning: 'No consumer replied to the request in time.',
    remedy: 'Check that a consumer of the subject is running and replies, or wait longer.',
  },
  TASK_INVALID: {
    retryable: false,
    meaning: 'A job, a step or a query of tasks has an invalid field.',
    remedy: 'Fix the field named in the message; details.field contains it.',
  },
  TASK_UNKNOWN: {
    retryable: false,
    meaning: 'The job does not exist.',
    remedy: 'Check the list of jobs; ended jobs are removed after their retention.',
  },
  TASK_TYPE_UNKNOWN: {
    retryable: false,
    meaning: 'The task type is not configured.',
    remedy: 'Add the type to task_types, or fix the name.',
  },
  TASK_TYPE_DRAINING: {
    retryable: true,
    meaning: 'The task type is draining and accepts no new jobs.',
    remedy: 'Resume the type, or wait until it is resumed.',
  },
  TASK_TYPES_INVALID: {
    retryable: false,
    meaning: 'The configuration of task types is invalid; details contain the field and the line.',
    remedy: 'Fix the line named in the message. Until then, the previous types stay in effect.',
  },
  TASK_STALE: {
    retryable: false,
    meaning: 'Another worker holds the job, or the job has ended: nothing was changed.',
    remedy: 'Stop working on the job; finished steps are kept.',
  },
  TASK_CONFLICT: {
    retryable: true,
    meaning: 'Concurrent changes of the job prevented this change.',
    remedy: 'Try again.',
  },
  TASK_STEP_TIMEOUT: {
    retryable: true,
    meaning: 'A step exceeded its time limit.',
    remedy: 'Raise the time limit of the step or of its type (step_timeout), or split the step.',
  },
  TASK_WORKER_LOST: {
    retryable: true,
    meaning: 'The worker that claimed the job is gone.',
    remedy: 'Find out why the worker ended; the job is retried by the rules of its type.',
  },
  TASK_CANCELLED: {
    retryable: false,
    meaning: 'The job was cancelled.',
    remedy: 'Retry the job if it should run again.',
  },
  TASK_TIMEOUT: {
    retryable: true,
    meaning: 'The job did not end in time.',
    remedy: 'Ask again later, or wait longer; the job continues.',
  },
  TASK_CHILD_FAILED: {
    retryable: false,
    meaning: 'A child of the job failed or was cancelled.',
    remedy: 'Inspect the child in details.id.',
  },
  TASKS_UNAVAILABLE: {
    retryable: true,
    meaning: 'The engine of the tasks is unreachable, or rejected the operation.',
    remedy: 'Try again; enqueue with the same key, so that the job is not stored twice.',
  },
  TASKS_CLOSED: {
    retryable: false,
    meaning: 'The tasks were closed.',
    remedy: 'Open them again.',
  },
  IMPORT_INVALID: {
    retryable: false,
    meaning: 'A line of an import is damaged, or is not a recorded event.',
    remedy: 'Export again, or truncate the file before the line named in the message.',
  },
  IMPORT_DIVERGED: {
    retryable: false,
    meaning: 'A target stream contains other events than the file.',
    remedy: 'Import into an empty store, or exclude the stream.',
  },
  NOT_AUTHENTICATED: {
    retryable: false,
    meaning: 'The request has no credentials or invalid credentials.',
    remedy: "Send 'Authorization: Bearer <token>'; millrace token create creates a token.",
  },
  IDENTITY_UNAVAILABLE: {
    retryable: true,
    meaning: 'A JWT cannot be verified, because the keys of its provider could not be fetched.',
    remedy:
      'Try again; check that the URL of the key set is correct and reachable from the server.',
  },
  NOT_ALLOWED: {
    retryable: false,
    meaning: 'The credentials are valid, but do not permit this operation.',
    remedy: 'Use a token with the scope in details and of the requested tenant.',
  },
  HOST_UNKNOWN: {
    retryable: false,
    meaning: 'The Host header has no name of this server, which listens on a loopback address.',
    remedy: 'Add the name to `server.hosts` of the configuration.',
  },
  NOT_FOUND: {
    retryable: false,
    meaning: 'Nothing exists at this address.',
    remedy: 'Check the address in the reference at /docs.',
  },
  TRACE_UNKNOWN: {
    retryable: false,
    meaning: 'The flow does not exist.',
    remedy:
      'Check the correlation id; flows are indexed by the role subscriptions, and removed after their retention.',
  },
  METHOD_NOT_ALLOWED: {
    retryable: false,
    meaning: 'The address does not support this method.',
    remedy: 'Use a method listed in the Allow header.',
  },
  REQUEST_INVALID: {
    retryable: false,
    meaning: 'The request does not match the schema of the route.',
    remedy: 'Fix the problems listed in details.problems.',
  },
  REQUEST_TOO_LARGE: {
    retryable: false,
    meaning: 'The body exceeds the size limit of the server.',
    remedy: 'Send smaller requests; details.bytesMax is the limit.',
  },
  REQUEST_TIMEOUT: {
    retryable: true,
    meaning: 'Receiving or processing the request took too long.',
    remedy: 'Send it again with its idempotency key; it may have had its effect.',
  },
  MEDIA_TYPE_UNKNOWN: {
    retryable: false,
    meaning: 'The server does not support the media type of the body.',
    remedy: 'Send JSON, as application/json, without a content encoding.',
  },
  CLIENT_TOO_SLOW: {
    retryable: true,
    meaning: 'The client did not read the response in time, so the server closed the connection.',
    remedy: 'Read faster, or reconnect and continue after the last received event.',
  },
  RATE_LIMITED: {
    retryable: true,
    meaning: 'The caller exceeded its rate limit.',
    remedy: 'Wait as long as the Retry-After header says.',
  },
  INTERNAL: {
    retryable: true,
    meaning: 'An internal error occurred; the log contains it.',
    remedy: 'Find the request id in the log; try again later.',
  },
  NOTIFY_REJECTED: {
    retryable: false,
    meaning: 'A topic message or a reader violates a rule or limit of ntfy.',
    remedy: 'Read the message, which is the text of ntfy; details.problem names the rule.',
  },
  TOKEN_INVALID: {
    retryable: false,
    meaning: 'The name, scopes, tenant or expiry of a token is invalid.',
    remedy: 'Fix the field named in the message.',
  },
  TOKEN_EXISTS: {
    retryable: false,
    meaning: 'A token with this name exists and is not revoked.',
    remedy: 'Choose another name, or revoke that token first.',
  },
  TOKEN_UNKNOWN: {
    retryable: false,
    meaning: 'No active token has this name or id.',
    remedy: 'Check the list of tokens: millrace token list.',
  },
  JOB_INVALID: {
    retryable: false,
    meaning: 'A job or the name of a work queue is invalid.',
    remedy: 'Fix the field named in the message: jobs contain ids, not data.',
  },
  CONFIG_INVALID: {
    retryable: false,
    meaning: 'A URL or a setting is invalid.',
    remedy: 'Fix the field named in the message.',
  },
  USAGE: {
    retryable: false,
    meaning: 'The command line is invalid.',
    remedy: 'Run the command with --help.',
  },
} as const satisfies Record<string, ErrorCodeInfo>;

export type ErrorCode = keyof typeof errorCodes;

// The one table of everything that can go wrong by name. docs/errors.md is checked against it.

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
      'A name breaks the grammar (event type, stream, key, subject, subscription, tenant, id).',
    remedy: 'Use the suggested spelling in the message, or the builder that it names.',
  },
  TENANT_UNKNOWN: {
    retryable: false,
    meaning: 'A tenant that contains a hyphen was used without being in the tenant directory.',
    remedy: 'Add the tenant to the directory and pass the directory to the builder and the parser.',
  },
  TENANT_OVERLAP: {
    retryable: false,
    meaning: 'One tenant is the beginning of another, so some stream names could belong to either.',
    remedy: 'Choose a tenant key that is not another tenant key followed by a hyphen.',
  },
  STREAM_AMBIGUOUS: {
    retryable: false,
    meaning: 'The stream name would parse back to a different tenant than it was built with.',
    remedy: 'Choose another aggregate id, or rename the tenant that overlaps.',
  },
  KEY_TOO_LONG: {
    retryable: false,
    meaning: 'A key or name has 256 characters or more.',
    remedy: 'Use a shorter id, or a hash of it.',
  },
  KEY_HOLDS_PERSONAL_DATA: {
    retryable: false,
    meaning:
      'An id that looks like an e-mail address or a phone number was to become part of a key.',
    remedy: 'Use an opaque id (UUID or ULID) and keep the address in the payload.',
  },
  ENVELOPE_INVALID: {
    retryable: false,
    meaning: 'An event envelope does not match its schema; details.problems lists every path.',
    remedy: 'Mend the fields that the problems name.',
  },
  PAYLOAD_INVALID: {
    retryable: false,
    meaning: 'A payload does not match the schema of its event or command.',
    remedy: 'Mend the fields that details.problems names.',
  },
  PAYLOAD_TOO_LARGE: {
    retryable: false,
    meaning: 'A payload is larger than the limit.',
    remedy: 'Store the blob elsewhere and refer to it, or raise payloadBytesMax.',
  },
  PAYLOAD_NOT_JSON: {
    retryable: false,
    meaning: 'A payload holds something that JSON cannot (NaN, BigInt, a function, a cycle, …).',
    remedy: 'Convert the value at details.path before it goes into the event.',
  },
  SCHEMA_ASYNC: {
    retryable: false,
    meaning: 'A schema validates asynchronously, which events and commands cannot wait for.',
    remedy: 'Use a synchronous schema; do look-ups in the command handler.',
  },
  VERSION_CONFLICT: {
    retryable: true,
    meaning: 'A stream is at another revision than the append expected.',
    remedy: 'Read the stream again, decide again, append again; details.actual has its revision.',
  },
  STREAM_DELETED: {
    retryable: false,
    meaning: 'The stream has a tombstone: it can be neither read nor written any more.',
    remedy: 'Use another stream.',
  },
  TENANT_MISMATCH: {
    retryable: false,
    meaning: 'An event of one tenant was to be appended to a stream of another.',
    remedy: "Build the stream's name with the event's own tenant.",
  },
  APPEND_INVALID: {
    retryable: false,
    meaning: 'An append is empty, too large, repeats an event id, or expects something impossible.',
    remedy: 'Mend the append as the message says.',
  },
  POSITION_INVALID: {
    retryable: false,
    meaning: 'A text was given as a position of the store and is none.',
    remedy: 'Pass positions on as they came from the store.',
  },
  FILTER_INVALID: {
    retryable: false,
    meaning: 'A filter is too large, or its pattern is not a linear-time regular expression.',
    remedy: 'Write the pattern without back-references and look-around, or use prefixes.',
  },
  SUBJECT_FORGOTTEN: {
    retryable: false,
    meaning: 'New personal data was to be stored for a person who was forgotten.',
    remedy: 'Give the person a new subject id.',
  },
  STORE_CLOSED: {
    retryable: false,
    meaning: 'The store was closed.',
    remedy: 'Open a new one.',
  },
  STORE_UNAVAILABLE: {
    retryable: true,
    meaning: "The store's database does not answer, is full, or refused the work.",
    remedy: 'Try again; details and cause say what the database said.',
  },
  STORE_CORRUPT: {
    retryable: false,
    meaning: 'What the store holds is not what was written to it.',
    remedy: 'Restore the database from a backup and report this.',
  },
  NOT_SUPPORTED: {
    retryable: false,
    meaning: 'This engine does not have the capability that was asked for.',
    remedy: 'Look at its capabilities, or choose another engine.',
  },
  LIFECYCLE_STOPPED: {
    retryable: false,
    meaning: 'Something was stopped before its start had finished.',
    remedy: 'Start it again, or treat this as the cancellation that it is.',
  },
  ABORTED: {
    retryable: false,
    meaning: 'A wait was cancelled by its AbortSignal.',
    remedy: 'Nothing: the caller asked for it.',
  },
  DRIVER_MISSING: {
    retryable: false,
    meaning: 'A feature needs a package that is not installed.',
    remedy: 'Install the package that the message names.',
  },
  SERVER_UNAVAILABLE: {
    retryable: true,
    meaning: 'A server that a test asked for could not be started.',
    remedy: 'Install the package that the message names, or read the log that it quotes.',
  },
  COMMAND_REFUSED: {
    retryable: false,
    meaning: 'A business rule refused the command.',
    remedy: 'Read details.reason; the same command on the same state is refused again.',
  },
  COMMAND_UNKNOWN: {
    retryable: false,
    meaning: 'The aggregate has no such command.',
    remedy: "Use a command of the aggregate's definition.",
  },
  COMMAND_KEY_REUSED: {
    retryable: false,
    meaning: 'An idempotency key was used before, for another command or another aggregate.',
    remedy: 'Use a key of its own for each intent; details tell what the key belongs to.',
  },
  EVENT_UNKNOWN: {
    retryable: false,
    meaning: 'A stored or decided event is of a type that the aggregate does not list.',
    remedy: "List the event, upcast it, or set unknownEvents to 'skip'.",
  },
  EVENT_UNREADABLE: {
    retryable: false,
    meaning: 'An upcaster, its schema or evolve failed at a stored event.',
    remedy: 'Mend the function that the cause names; the stream is unharmed.',
  },
  AGGREGATE_INVALID: {
    retryable: false,
    meaning: 'The definition of an aggregate does not fit together.',
    remedy: 'Mend the definition as the message says.',
  },
  AGGREGATE_BUSY: {
    retryable: true,
    meaning: 'Too many commands of this process wait for one aggregate.',
    remedy: 'Try again later, or spread the work over more aggregates.',
  },
  SUBSCRIPTION_INVALID: {
    retryable: false,
    meaning: 'The definition of a subscription does not fit together, or not to what is stored.',
    remedy: 'Mend the definition as the message says, or give it a new version.',
  },
  SUBSCRIPTION_UNKNOWN: {
    retryable: false,
    meaning: 'There is no subscription of this name.',
    remedy: 'Look at the list of subscriptions; one appears when it is first started.',
  },
  SUBSCRIPTION_RUNNING: {
    retryable: true,
    meaning: 'The subscription runs, so that its checkpoint may not be moved under it.',
    remedy: 'Pause it first, or stop the processes that run it.',
  },
  LEASE_LOST: {
    retryable: true,
    meaning: 'Another process has taken over, so that this one may not write any more.',
    remedy: 'Nothing: the new owner goes on, and this one stands by.',
  },
  HANDLER_TIMEOUT: {
    retryable: true,
    meaning: 'A handler took longer than its timeoutMs.',
    remedy: 'Pass the signal on to whatever it waits for, or raise timeoutMs.',
  },
  DEAD_LETTER_UNKNOWN: {
    retryable: false,
    meaning: 'There is no dead letter with this id.',
    remedy: 'Look at the list of dead letters.',
  },
  DEAD_LETTER_CLOSED: {
    retryable: false,
    meaning: 'The dead letter was replayed or discarded already.',
    remedy: 'Nothing: details.status says what became of it.',
  },
  READ_MODEL_UNKNOWN: {
    retryable: false,
    meaning: 'No module that is loaded has a read model of this name.',
    remedy: 'Use a read model of a projection in the configuration.',
  },
  READ_MODEL_INVALID: {
    retryable: false,
    meaning: 'A read model, or a document or a query of it, does not fit to its definition.',
    remedy: 'Mend what the message names.',
  },
  DOCUMENT_FOREIGN: {
    retryable: false,
    meaning: 'A document that came from one stream was to be changed by an event of another.',
    remedy: 'Give the documents of each stream ids of their own.',
  },
  CURSOR_INVALID: {
    retryable: false,
    meaning: 'A text was given as the cursor of a page and is none.',
    remedy: 'Pass cursors on as they came with the page before, to the same query.',
  },
  PROJECTION_INVALID: {
    retryable: false,
    meaning: 'A projection, or what is to be done with a version of it, does not fit together.',
    remedy: 'Mend the definition or take the step that the message names.',
  },
  PROJECTION_UNKNOWN: {
    retryable: false,
    meaning: 'There is no such version of the read model.',
    remedy: 'Look at the status of the projections; a version appears when it is first started.',
  },
  PROJECTION_BUSY: {
    retryable: true,
    meaning: 'Another process is at work on this projection.',
    remedy: 'Wait for it to end, or for its lease to run out.',
  },
  WAIT_TIMEOUT: {
    retryable: true,
    meaning: 'A read model did not get to the position in the time that was given.',
    remedy: 'Look at the lag of the projection, or give it more time.',
  },
  REACTOR_INVALID: {
    retryable: false,
    meaning: 'The definition of a reactor or a saga does not fit together.',
    remedy: 'Mend the definition as the message says.',
  },
  SAGA_UNKNOWN: {
    retryable: false,
    meaning: 'There is no saga with this key.',
    remedy: 'Ask for the list of sagas; the key is what correlateBy returned.',
  },
  SAGA_NOT_PARKED: {
    retryable: false,
    meaning: 'The saga is not parked, so there is nothing to resume or to skip.',
    remedy: 'Nothing: details.status says what became of it.',
  },
  ADDRESS_FORBIDDEN: {
    retryable: false,
    meaning: 'A URL leads to an address of a private network, of this machine, or of no machine.',
    remedy: 'Mend the URL, or allow the range where the receiver is meant to be there.',
  },
  SIGNATURE_INVALID: {
    retryable: false,
    meaning: 'A webhook is not signed with a known secret, or its time is too far from now.',
    remedy: 'Answer with 401; details.reason says what was wrong, for your own log.',
  },
  TRANSACTION_INVALID: {
    retryable: false,
    meaning: 'What was given as a transaction is none, has ended, or answers in another shape.',
    remedy: 'Pass the transaction itself, while it is open, through the adapter of its library.',
  },
  OUTBOX_INVALID: {
    retryable: false,
    meaning: 'A message for the outbox, or a question to its ledger, does not fit the ledger.',
    remedy: 'Mend the field that the message names; details.field has it.',
  },
  OUTBOX_UNKNOWN: {
    retryable: false,
    meaning: 'The ledger has no message with this id.',
    remedy: 'Ask for the list of messages; sent ones are forgotten when they are purged.',
  },
  BUS_INVALID: {
    retryable: false,
    meaning: 'A message, a group or a question to the bus does not fit it.',
    remedy: 'Mend the field that the message names; details.field has it.',
  },
  BUS_UNAVAILABLE: {
    retryable: true,
    meaning: 'The broker of the bus cannot be reached, or did not take the work.',
    remedy: 'Try again; publish with the same id, so that nothing is stored twice.',
  },
  BUS_CLOSED: {
    retryable: false,
    meaning: 'The bus was closed.',
    remedy: 'Open a new one.',
  },
  BUS_GROUP_CONFLICT: {
    retryable: false,
    meaning: 'The group is there already, over another subject or pattern.',
    remedy: 'Use another group name, or delete the group first.',
  },
  BUS_GROUP_UNKNOWN: {
    retryable: false,
    meaning: 'There is no consumer group of this name.',
    remedy: 'Look at the list of groups; one appears when it is first used.',
  },
  BUS_STREAM_HELD: {
    retryable: true,
    meaning: 'A group has not acked everything in the stream.',
    remedy: 'Let the groups of details.groups finish, or say evenUnacked.',
  },
  BUS_NO_REPLY: {
    retryable: true,
    meaning: 'Nobody answered the request in the time that was given.',
    remedy: 'See that a consumer of the subject runs and replies, or give it more time.',
  },
  TASK_INVALID: {
    retryable: false,
    meaning: 'A task, a step or a question about tasks does not fit.',
    remedy: 'Mend the field that the message names; details.field has it.',
  },
  TASK_UNKNOWN: {
    retryable: false,
    meaning: 'There is no job with this id.',
    remedy: 'Look at the list of jobs; ended ones are forgotten after their retention.',
  },
  TASK_TYPE_UNKNOWN: {
    retryable: false,
    meaning: 'No task type of this name is configured.',
    remedy: 'Add an entry to task_types, or mend the name.',
  },
  TASK_TYPE_DRAINING: {
    retryable: true,
    meaning: 'The task type takes no new jobs, because somebody drains it.',
    remedy: 'Resume the type, or wait until somebody does.',
  },
  TASK_TYPES_INVALID: {
    retryable: false,
    meaning: 'The configuration of task types does not fit; details has the field and the line.',
    remedy: 'Mend the line that the message names. Until then the types before count.',
  },
  TASK_STALE: {
    retryable: false,
    meaning: 'The job is held by another worker by now, or has ended: nothing was changed.',
    remedy: 'Stop working on it; what was finished before is kept.',
  },
  TASK_CONFLICT: {
    retryable: true,
    meaning: 'The job kept changing while it was to be changed.',
    remedy: 'Try again.',
  },
  TASK_STEP_TIMEOUT: {
    retryable: true,
    meaning: 'A step took longer than it may.',
    remedy: 'Give the step, or its type (step_timeout), more time, or make it smaller.',
  },
  TASK_WORKER_LOST: {
    retryable: true,
    meaning: 'The worker that held the job is gone.',
    remedy: 'See why it ended; the job goes to another one by the rules of its type.',
  },
  TASK_CANCELLED: {
    retryable: false,
    meaning: 'The job was cancelled.',
    remedy: 'Retry the job if it is to run all the same.',
  },
  TASK_TIMEOUT: {
    retryable: true,
    meaning: 'The job has not ended in the time that was given.',
    remedy: 'Ask again later, or give it more time; the job goes on.',
  },
  TASK_CHILD_FAILED: {
    retryable: false,
    meaning: 'A child of the job failed or was cancelled.',
    remedy: 'Look at the child that details.id names.',
  },
  TASKS_UNAVAILABLE: {
    retryable: true,
    meaning: 'The engine of the tasks cannot be reached, or did not take the work.',
    remedy: 'Try again; enqueue with the same key, so that nothing is stored twice.',
  },
  TASKS_CLOSED: {
    retryable: false,
    meaning: 'The tasks were closed.',
    remedy: 'Open them anew.',
  },
  IMPORT_INVALID: {
    retryable: false,
    meaning: 'A line of an import is damaged or is not a recorded event.',
    remedy: 'Export again, or cut the file before the line that the message names.',
  },
  IMPORT_DIVERGED: {
    retryable: false,
    meaning: "A stream of the import's target has other events than the file.",
    remedy: 'Import into an empty store, or leave that stream out.',
  },
  NOT_AUTHENTICATED: {
    retryable: false,
    meaning: 'The request has no credentials, or some that are not good.',
    remedy: "Send 'Authorization: Bearer <token>'; millrace token create makes one.",
  },
  IDENTITY_UNAVAILABLE: {
    retryable: true,
    meaning: 'Whether a JWT is good cannot be said: the keys of its provider could not be fetched.',
    remedy: 'Try again; see that the URL of the key set is right and reachable from the server.',
  },
  NOT_ALLOWED: {
    retryable: false,
    meaning: 'The credentials are good, but not for this.',
    remedy: 'Use a token with the scope that details name, and of the tenant that is asked for.',
  },
  NOT_FOUND: {
    retryable: false,
    meaning: 'There is nothing at this address.',
    remedy: 'Look the address up in the reference at /docs.',
  },
  TRACE_UNKNOWN: {
    retryable: false,
    meaning: 'Nothing is known of the flow.',
    remedy:
      'Check the correlation id; flows are forgotten after their retention, and show once the role subscriptions has indexed them.',
  },
  METHOD_NOT_ALLOWED: {
    retryable: false,
    meaning: 'The address is there, but not for this method.',
    remedy: 'Use one of the methods of the Allow header.',
  },
  REQUEST_INVALID: {
    retryable: false,
    meaning: 'The request does not have the form that the route wants.',
    remedy: 'Read details.problems: each names a place and what is wrong there.',
  },
  REQUEST_TOO_LARGE: {
    retryable: false,
    meaning: 'The body is larger than the server takes.',
    remedy: 'Send less at once; details.bytesMax is the limit.',
  },
  REQUEST_TIMEOUT: {
    retryable: true,
    meaning: 'The request took too long to arrive or to be answered.',
    remedy: 'Send it again with its idempotency key; it may have had its effect.',
  },
  MEDIA_TYPE_UNKNOWN: {
    retryable: false,
    meaning: 'The body is in a form that the server does not read.',
    remedy: 'Send JSON, as application/json, without a content encoding.',
  },
  RATE_LIMITED: {
    retryable: true,
    meaning: 'More requests came than are taken from one caller.',
    remedy: 'Wait for as long as the Retry-After header says.',
  },
  INTERNAL: {
    retryable: true,
    meaning: 'Something went wrong inside, and the log has it.',
    remedy: 'Look the request id up in the log; try again later.',
  },
  NOTIFY_REFUSED: {
    retryable: false,
    meaning:
      'A message of a topic, or a reader of one, is not as ntfy wants it, or beyond a limit.',
    remedy: "Read the message: it is ntfy's own; details.problem names it.",
  },
  TOKEN_INVALID: {
    retryable: false,
    meaning: 'A token cannot be made as it was asked for: its name, scopes, tenant or expiry.',
    remedy: 'Mend the field that the message names.',
  },
  TOKEN_EXISTS: {
    retryable: false,
    meaning: 'There is a token of this name that was not revoked.',
    remedy: 'Choose another name, or revoke that token first.',
  },
  TOKEN_UNKNOWN: {
    retryable: false,
    meaning: 'There is no token of this name or id that could be revoked.',
    remedy: 'Look at the list of tokens: millrace token list.',
  },
  JOB_INVALID: {
    retryable: false,
    meaning: 'A job or the name of a queue is not one that every queue could keep.',
    remedy: 'Mend the field that the message names: jobs carry ids, not what they stand for.',
  },
  CONFIG_INVALID: {
    retryable: false,
    meaning: 'A URL or a setting cannot be understood.',
    remedy: 'Mend the field that the message names.',
  },
  USAGE: {
    retryable: false,
    meaning: 'A command line is wrong.',
    remedy: 'Run the command with --help.',
  },
} as const satisfies Record<string, ErrorCodeInfo>;

export type ErrorCode = keyof typeof errorCodes;

export {
  createTraces,
  type Trace,
  type TracedFlow,
  type TraceOptions,
  type Traces,
  type TraceSources,
} from './create-traces.ts';
export { traceSubscription, type TraceSubscriptionOptions } from './keep-trace-index.ts';
export { type TraceEntry, type TraceIndex, type TraceQuery } from './trace-index.ts';
export type {
  CommandNode,
  DeliveryNode,
  EventNode,
  HandlerFact,
  HandlerNode,
  JobNode,
  MessageNode,
  SagaNode,
  TaskNode,
  TracedEvent,
  TracedJob,
  TracedLetter,
  TracedMessage,
  TracedPublication,
  TracedSaga,
  TracedTask,
  TracedWork,
  TraceFacts,
  TraceNode,
} from './trace-node.ts';
export { buildTraceTree, traceLimits, type TraceTree } from './trace-tree.ts';

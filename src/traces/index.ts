export {
  memoryTraceIndex,
  type TraceEntry,
  type TraceHost,
  type TraceIndex,
  type TraceQuery,
} from './trace-index.ts';

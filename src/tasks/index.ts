export { parseCron, type CronSchedule } from './cron.ts';
export { createTasks, type TasksOptions } from './create-tasks.ts';
export type { Duration } from '../foundation/duration.ts';
export { durationMs } from './rules/check-task.ts';
export { parseTaskTypes } from './parse-task-types.ts';
export { taskIdOf } from './rules/prepare-task.ts';
export { takeTokens } from '../foundation/token-bucket.ts';
export { startTaskOrchestrator, type TaskOrchestratorOptions } from './run/start-orchestrator.ts';
export {
  startWorkers,
  type ControlMessage,
  type TaskWorkers,
  type WorkersOptions,
} from './run/start-workers.ts';
export {
  task,
  type StepOptions,
  type StepScope,
  type TaskContext,
  type TaskDefinition,
  type TaskHandler,
} from './task-definition.ts';
export type {
  BeatConnection,
  BeatThread,
  ChangeOutcome,
  ClaimRequest,
  ClaimRule,
  ClaimWait,
  EnqueueEntry,
  EnqueueOutcome,
  HeadChange,
  RateRule,
  TaskCapabilities,
  TaskChange,
  TaskEngine,
  TaskFilter,
  TaskGuard,
  TaskListing,
  TypeCount,
  TypeMode,
  WorkerBeat,
} from './task-engine.ts';
export {
  taskTypeOf,
  type StoredTask,
  type TaskFields,
  type TaskHead,
  type TaskRef,
  type TaskState,
  type TerminalState,
} from './task-job.ts';
export { taskLimits } from './task-limits.ts';
export type {
  HistoryEntry,
  StepRecord,
  Task,
  TaskFailure,
  TaskStep,
  TaskWait,
} from './task-record.ts';
export type { TaskSignal } from './task-signal.ts';
export {
  createTaskSweep,
  startTaskSweeper,
  type TasksSwept,
  type TaskSweep,
  type TaskSweeperOptions,
} from './run/task-sweeper.ts';
export { taskType, type CronRule, type TaskBackoff, type TaskType } from './task-type.ts';
export type {
  BulkOptions,
  BulkOutcome,
  BulkProgress,
  ChildOutcome,
  ChildrenWait,
  ClaimedTask,
  ClaimOptions,
  Enqueued,
  EventWait,
  HeartbeatRequest,
  ClaimState,
  NewTask,
  StepFailure,
  StepFinish,
  StepStart,
  ClaimedJobCalls,
  TaskPage,
  TaskQuery,
  Tasks,
  TaskToken,
  TimelineEntry,
  WorkerInfo,
} from './tasks.ts';
export { loadTaskTypes, watchTaskTypes } from './run/watch-task-types.ts';

export { eventually } from './assertions.ts';
export {
  apiCaller,
  type ApiResponse,
  type ApiCaller,
  type ApiSocket,
  type ReceivedEvent,
  type SocketMessage,
} from './api-caller.ts';
export { fakeClock, type FakeClock } from './fake-clock.ts';
export { stressLifecycle, type LifecycleStressOptions } from './lifecycle-stress.ts';
export { seededRandom, type SeededRandom } from './seeded-random.ts';
export type { ServerOptions } from './servers/launch-server.ts';
export {
  startFakeSlack,
  type FakeSlack,
  type FakeSlackBehaviour,
  type FakeSlackMessage,
  type FakeSlackOptions,
} from './servers/fake-slack.ts';
export {
  startHttpReceiver,
  type AnswerRequest,
  type HttpReceiver,
  type HttpReceiverOptions,
  type ReceivedRequest,
} from './servers/http-receiver.ts';
export { startNats, type NatsOptions, type NatsServer } from './servers/nats-server.ts';
export {
  startPostgres,
  type PostgresOptions,
  type PostgresServer,
} from './servers/postgres-server.ts';
export {
  startRedisCluster,
  type RedisCluster,
  type RedisClusterOptions,
} from './servers/redis-cluster.ts';
export { startRedis, type RedisOptions, type RedisServer } from './servers/redis-server.ts';
export type {
  SharedNats,
  SharedPostgres,
  SharedRedis,
  SharedRedisCluster,
} from './servers/server-pool.ts';
export type { ServerProcess, WaitOptions } from './servers/server-process.ts';
export {
  hostSharedServers,
  sharedNats,
  sharedPostgres,
  sharedRedis,
  sharedRedisCluster,
} from './servers/shared-servers.ts';
export type { ReceivedMail, SmtpRejection, SmtpStage } from './servers/smtp-mailbox.ts';
export { startSmtp, type SmtpOptions, type SmtpServer } from './servers/smtp-server.ts';
export {
  eventStoreConformance,
  runConformance,
  type ConformanceCase,
  type ConformanceRunner,
  type StoreFixture,
} from './conformance/store/event-store.ts';
export { keyClaimsConformance, type KeyClaimsCase } from './conformance/aggregates/key-claims.ts';
export {
  snapshotStoreConformance,
  type SnapshotStoreCase,
} from './conformance/aggregates/snapshot-store.ts';
export {
  leaseStoreConformance,
  subscriptionStorageConformance,
  type LeaseStoreFixture,
  type StorageCase,
  type SubscriptionStorageFixture,
} from './conformance/subscriptions/subscription-storage.ts';
export {
  readModelsConformance,
  type ReadModelCase,
  type ReadModelFixture,
} from './conformance/projections/read-models.ts';
export {
  breakerStoreConformance,
  type BreakerStoreCase,
} from './conformance/delivery/breaker-store.ts';
export {
  destinationConformance,
  type DestinationCase,
  type DestinationFixture,
  type Received,
} from './conformance/delivery/destination.ts';
export {
  endpointHealthConformance,
  type EndpointHealthCase,
} from './conformance/delivery/endpoint-health.ts';
export {
  outboxLedgerConformance,
  type OpenedLedger,
  type OutboxLedgerCase,
  type OutboxLedgerFixture,
} from './conformance/outbox/outbox-ledger.ts';
export {
  busConformance,
  type BusCase,
  type BusFixture,
  type OpenedBus,
} from './conformance/bus/bus.ts';
export {
  tasksConformance,
  type OpenedTasks,
  type TasksCase,
  type TasksFixture,
} from './conformance/tasks/tasks.ts';
export {
  keyStoreConformance,
  type KeyStoreCase,
  type KeyStoreFixture,
} from './conformance/work/key-store.ts';
export {
  workQueueConformance,
  type OpenedWorkQueue,
  type WorkQueueCase,
  type WorkQueueFixture,
} from './conformance/work/work-queue.ts';
export { coldStorageConformance, type ColdStorageCase } from './conformance/bus/cold-storage.ts';
export { sagaIndexConformance, type SagaIndexCase } from './conformance/reactors/saga-index.ts';
export { traceIndexConformance, type TraceIndexCase } from './conformance/traces/trace-index.ts';
export { given, type Given, type ThenState, type When } from './given.ts';
export {
  givenReactor,
  type GivenReactor,
  type SentCommand,
  type WhenReactor,
} from './given-reactor.ts';
export { givenSaga, type GivenSaga, type SagaReplies, type SagaHappening } from './given-saga.ts';
export {
  childInput,
  startChild,
  tellParent,
  type Child,
  type ChildEnd,
  type ChildOptions,
} from './child-process.ts';
export { openHistory, type HistoryFile } from './history-file.ts';
export {
  assertNoViolations,
  checkDelivered,
  checkStored,
  parseHistory,
  type EventLocation,
  type HistoryEntry,
  type HistoryResult,
  type HistoryRule,
  type HistoryWrite,
  type Violation,
} from './history.ts';

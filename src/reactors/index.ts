export {
  dispatchCommands,
  type CommandReceiver,
  type EventNamed,
  type Reaction,
  type RecordedEventOf,
  type SendCommand,
} from './reaction.ts';
export {
  reactor,
  type Reactor,
  type ReactorContext,
  type ReactorDefinition,
  type ReactorFilter,
  type ReactorMap,
  type ReactorTuning,
  type Rejection,
  type RejectionPolicy,
} from './reactor.ts';
export { startReactor, type ReactorOptions } from './start-reactor.ts';
export {
  saga,
  sagaLimits,
  type Compensation,
  type Saga,
  type SagaAction,
  type SagaActions,
  type SagaDefinition,
  type SagaEventMap,
  type SagaStep,
  type SagaView,
  type StepDenial,
} from './saga.ts';
export {
  sagaAdmin,
  type SagaAddress,
  type SagaAdmin,
  type SagaInfo,
  type SagaPage,
} from './saga-admin.ts';
export type { ParkedAt, SagaFact, SagaName, SagaOperator, SagaRequest } from './saga-fact.ts';
export {
  type SagaEntry,
  type SagaIndex,
  type SagaIndexUpkeep,
  type SagaQuery,
  type SagaShards,
} from './saga-index.ts';
export { startSaga, type SagaOptions, type SagaRoles, type SagaRunner } from './saga-runner.ts';
export type { SagaParked, SagaStatus, SagaStepStatus } from './saga-state.ts';

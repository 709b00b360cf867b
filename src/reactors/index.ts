export { dispatchCommands, type CommandReceiver } from './dispatch-commands.ts';
export type { EventNamed, Reaction, RecordedEventOf, SendCommand } from './reaction.ts';
export {
  reactor,
  type Reactor,
  type ReactorContext,
  type ReactorDefinition,
  type ReactorMap,
  type ReactorTuning,
  type Refusal,
  type RefusalPolicy,
} from './reactor.ts';
export { startReactor, type ReactorOptions } from './start-reactor.ts';

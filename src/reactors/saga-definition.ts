// The types of a saga definition.

import type { NewCommand } from '../contracts/define-command.ts';
import type { EventOf } from '../contracts/define-event.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { Identifier } from '../contracts/identifier.ts';
import type { Position } from '../store/position.ts';
import type { EventNamed, RecordedEventOf } from './reaction.ts';
import type { ReactorTuning } from './reactor.ts';
import type { SagaStepStatus } from './saga-state.ts';

/** The input of a decision. */
export interface SagaView<Data = unknown> {
  readonly tenant: string;
  readonly key: string;
  readonly data: Data;
  readonly nowMs: number;
  readonly correlationId: string;
  /** The steps so far, in the order of their requests. */
  readonly steps: readonly { readonly step: string; readonly status: SagaStepStatus }[];
}

/** Decided by a pure function, stored as an event, then carried out. */
export type SagaAction<Data, Step extends string, Timer extends string> =
  /** Sends a command; the step is done when it is accepted. */
  | {
      readonly run: Step;
      readonly id: string;
      readonly command: NewCommand;
      /** Default: the saga's. */
      readonly tenant?: string | undefined;
    }
  /** Replaces the saga's data, which must be JSON. */
  | { readonly data: Data }
  /** Sets or resets the timer. */
  | { readonly timer: Timer; readonly afterMs: number }
  | { readonly cancel: Timer }
  /** Completes when all steps have an outcome; if one is denied, the saga is compensated instead. */
  | { readonly end: 'completed' }
  /** Compensates all completed steps, last step first. */
  | { readonly end: 'failed'; readonly reason: string };

export type SagaActions<Data, Step extends string, Timer extends string> =
  | readonly SagaAction<Data, Step, Timer>[]
  | undefined;

/** The command that undoes a step; undefined: there is nothing to undo. */
export type Compensation =
  | { readonly id: string; readonly command: NewCommand; readonly tenant?: string }
  | undefined;

export interface StepDenial {
  readonly kind: 'refused' | 'rejected';
  readonly reason: string;
  readonly message: string;
}

export interface SagaStep<Data, Step extends string, Timer extends string> {
  readonly onDone?: ((view: SagaView<Data>) => SagaActions<Data, Step, Timer>) | undefined;
  /** Default: the saga fails and is compensated. */
  readonly onDenied?:
    | ((view: SagaView<Data>, denial: StepDenial) => SagaActions<Data, Step, Timer>)
    | undefined;
  /** Absent: the step needs no compensation. */
  readonly compensate?: (
    view: SagaView<Data>,
    sent: { readonly tenant: string; readonly id: string; readonly command: NewCommand },
  ) => Compensation;
}

export type SagaEventMap<
  Event extends NewEvent,
  Data,
  Step extends string,
  Timer extends string,
> = {
  readonly [Type in Event['type']]: (
    event: RecordedEventOf<Extract<Event, { readonly type: Type }>>,
    view: SagaView<Data>,
  ) => SagaActions<Data, Step, Timer>;
};

export interface SagaDefinition<
  Bc extends string,
  Name extends string,
  Definitions extends readonly EventNamed[],
  Data,
  Step extends string,
  Timer extends string,
> extends Omit<ReactorTuning, 'timeoutMs'> {
  /** With `name` and `version`: the category of its streams, and `sub:<bc>:<name>:v<version>`. */
  readonly bc: Identifier<Bc>;
  readonly name: Identifier<Name>;
  /** Increase it when running sagas should finish with the old rules. */
  readonly version: number;
  readonly events: Definitions;
  /** Where a new subscription starts: with the first event, or with the next one appended (`end`). */
  readonly from: 'start' | 'end' | Position;
  /** Empty, with `onEarly: 'ignore'`: running sagas finish, and no new one starts. */
  readonly startOn: readonly EventOf<Definitions[number]>['type'][];
  /** The key of the saga that an event belongs to; undefined: none. Each key runs once per tenant. */
  readonly correlateBy: (
    event: RecordedEventOf<EventOf<Definitions[number]>>,
  ) => string | undefined;
  /** The data before the first event. */
  readonly initial: Data;
  readonly on: SagaEventMap<
    EventOf<Definitions[number]>,
    NoInfer<Data>,
    NoInfer<Step>,
    NoInfer<Timer>
  >;
  readonly steps: {
    readonly [Each in Step]: SagaStep<NoInfer<Data>, NoInfer<Step>, NoInfer<Timer>>;
  };
  readonly timers?: {
    readonly [Each in Timer]: (
      view: SagaView<NoInfer<Data>>,
    ) => SagaActions<NoInfer<Data>, NoInfer<Step>, NoInfer<Timer>>;
  };
  /** Time limit from the start; after it, the saga fails and is compensated. */
  readonly expiresAfterMs?: number | undefined;
  /** An event before the start event is held until the start (default), or ignored. */
  readonly onEarly?: 'hold' | 'ignore' | undefined;
  /**
   * A step whose command has no outcome after the last attempt: the saga is parked (default), or
   * compensated together with this step, because the command may have taken effect.
   */
  readonly onUnanswered?: 'park' | 'compensate' | undefined;
  /** Time limit of one command attempt. Default: 10 s. */
  readonly commandTimeoutMs?: number | undefined;
}

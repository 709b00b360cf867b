// What a module offers over HTTP and WebSocket beside what the API makes of its commands and documents:
// routes and messages of its own. The server calls it; nothing here knows the server.

import type { Static, TObject } from 'typebox';
import type { CommandRequest, CommandResult } from '../../aggregates/command-handler.ts';
import type { NewCommand } from '../../contracts/define-command.ts';
import type { NewEvent } from '../../contracts/envelope.ts';
import type { TenantLookup } from '../../contracts/tenant.ts';
import type { Clock } from '../../foundation/clock.ts';
import type { Observer } from '../../foundation/observer.ts';
import type { DocumentQueries } from '../../projections/documents.ts';
import type { Projection } from '../../projections/projection.ts';
import type { ModelKey } from '../../projections/read-model-store.ts';
import type { WaitOptions } from '../../projections/wait-with-timeout.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { Position } from '../../store/position.ts';
import type { LoadAggregate } from '../platform-commands.ts';
import type { Principal } from './principal.ts';
import type { ApiRequest, ProblemDetails, Route } from './route.ts';

/** What of the platform its routes and messages may use. */
export interface WebContext {
  readonly store: EventStore;
  readonly tenants: TenantLookup;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly handle: (
    request: CommandRequest<NewCommand>,
  ) => Promise<CommandResult<unknown, NewEvent>>;
  readonly load: LoadAggregate;
  readonly documents: (family: Pick<ModelKey, 'bc' | 'aggregate'>) => DocumentQueries<object>;
  /** Until the projection has seen everything up to this position: to read what one wrote. */
  readonly waitFor: (
    projection: Projection,
    position: Position,
    options?: WaitOptions,
  ) => Promise<void>;
}

/** One for each server that is started; disposed of when that has ended. */
export interface ModuleWeb extends Partial<AsyncDisposable> {
  /** Beside those of the platform; one that would hide another of those is refused. */
  readonly routes?: readonly Route[];
  readonly socket?: ModuleSocket;
}

/** One WebSocket, from when it is known who it is. */
export interface SocketClient {
  readonly principal: Principal;
  /** Fires when it is over. */
  readonly signal: AbortSignal;
  /**
   * An object, or the JSON text of one that goes to many. Never waits: whoever leaves more unread than
   * the limit is cut off, and after that nothing is sent.
   */
  readonly send: (message: object | string) => void;
  /** When what was sent last is on its way: whoever has much to send stays within the limit by it. */
  readonly whenSent: () => Promise<void>;
}

export type SocketAsking = Pick<ApiRequest, 'address' | 'requestId' | 'signal'>;

type SocketMessages = Readonly<Record<string, TObject>>;

/** What a module keeps of one connection. Disposed of when that is over. */
export interface SocketSession<
  Messages extends SocketMessages = SocketMessages,
> extends Partial<Disposable> {
  readonly on: {
    readonly [Type in keyof Messages]: (
      message: Static<Messages[Type]>,
      asking: SocketAsking,
    ) => Promise<void> | void;
  };
}

/** As the server takes it, whatever its messages are. */
export interface ModuleSocket {
  /** What clients may send: the content by the message's type, which is added, as is an `id` for errors. */
  readonly messages: SocketMessages;
  /** What they are sent, for the reference; by type. */
  readonly sends: SocketMessages;
  /** How errors of its messages are told. Default: a message `problem`. Pure. */
  readonly error?: (problem: ProblemDetails) => object;
  /** For each connection, behind the platform's `ready`: what it sends now is a greeting. */
  connect(client: SocketClient): SocketSession;
}

/**
 * Defines messages of a module on the WebSocket; what its handlers get has the types of the schemas.
 *
 * @example
 * import { defineModule, defineSocket } from 'millrace/platform';
 * import { Type } from 'millrace/contracts';
 *
 * const echo = defineSocket({
 *   messages: { 'echo.say': Type.Object({ text: Type.String({ maxLength: 100 }) }) },
 *   sends: { 'echo.said': Type.Object({ text: Type.String() }) },
 *   connect: (client) => ({
 *     on: { 'echo.say': ({ text }) => client.send({ type: 'echo.said', text }) },
 *   }),
 * });
 * export default defineModule({ name: 'echo', web: () => ({ socket: echo }) });
 */
export function defineSocket<Messages extends SocketMessages>(
  definition: Omit<ModuleSocket, 'connect' | 'messages'> & {
    readonly messages: Messages;
    connect(client: SocketClient): SocketSession<Messages>;
  },
): ModuleSocket {
  // The server checks what comes by these very schemas before it calls.
  return definition;
}

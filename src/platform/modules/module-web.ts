// The routes and WebSocket messages of a module, in addition to those for its commands and documents. The server calls
// them; nothing here depends on the server.

import type { Static, TObject } from 'typebox';
import type { TenantLookup } from '../../contracts/tenant.ts';
import type { EventStore } from '../../store/event-store.ts';
import type { HandleCommand } from '../platform-commands.ts';
import type { ModuleContext } from './platform-module.ts';
import type { Principal } from './principal.ts';
import type { ApiRequest, ProblemDetails, Route } from './route.ts';

/** The parts of the platform for routes and messages. */
export interface WebContext extends Pick<
  ModuleContext,
  'clock' | 'documents' | 'load' | 'observer' | 'waitFor'
> {
  readonly store: EventStore;
  readonly tenants: TenantLookup;
  readonly handle: HandleCommand;
}

/** Created for each server that is started; disposed when the server has stopped. */
export interface ModuleWeb extends Partial<AsyncDisposable> {
  /** Routes in addition to those of the platform; a route that would hide one of the platform is rejected. */
  readonly routes?: readonly Route[] | undefined;
  readonly socket?: ModuleSocket | undefined;
}

/** One authenticated WebSocket. */
export interface SocketClient {
  readonly principal: Principal;
  /** Fires when the connection ends. */
  readonly signal: AbortSignal;
  /**
   * An object, or its JSON string if the message goes to many clients. Never waits: a client with more unread data than the
   * limit is disconnected, and nothing more is sent.
   */
  readonly send: (message: object | string) => void;
  /** Resolves when the last message is written: for senders of much data, to stay within the limit. */
  readonly whenSent: () => Promise<void>;
}

export type MessageContext = Pick<ApiRequest, 'address' | 'requestId' | 'signal'>;

type SocketMessages = Readonly<Record<string, TObject>>;

/** The state of one connection in a module. Disposed when the connection ends. */
export interface SocketSession<
  Messages extends SocketMessages = SocketMessages,
> extends Partial<Disposable> {
  readonly on: {
    readonly [Type in keyof Messages]: (
      message: Static<Messages[Type]>,
      context: MessageContext,
    ) => Promise<void> | void;
  };
}

/** A socket with any messages, as the server uses it. */
export interface ModuleSocket {
  /** Accepted messages: the schema of the content, by message type. */
  readonly messages: SocketMessages;
  /** Sent messages, for the reference; by type. */
  readonly sends: SocketMessages;
  /** Formats errors of its messages. Default: a message `problem`. Pure. */
  readonly error?: ((problem: ProblemDetails) => object) | undefined;
  /** Called for each connection after the platform's `ready`. */
  connect(client: SocketClient): SocketSession;
}

/**
 * Defines WebSocket messages of a module; its handlers get the types of the schemas.
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
  // The server validates each message with these schemas before it calls a handler.
  return definition;
}

// Limits of a WebSocket, and its close codes.

export interface WsLimits {
  readonly messageBytesMax: number;
  /** Time limit of the first message, which authenticates. */
  readonly authMsMax: number;
  /** The interval of pings; without a pong before the next ping the connection is closed. */
  readonly heartbeatMs: number;
  readonly subscriptionsMax: number;
  /** Running commands, queries etc. */
  readonly requestsMax: number;
  /** Data that the client has not read. */
  readonly unreadBytesMax: number;
  /** From the close frame to closing the socket. */
  readonly closeMsMax: number;
  /** For running requests during a stop. */
  readonly drainMsMax: number;
}

export const wsLimits: WsLimits = {
  messageBytesMax: 1_048_576,
  authMsMax: 5_000,
  heartbeatMs: 30_000,
  subscriptionsMax: 32,
  requestsMax: 64,
  unreadBytesMax: 4_194_304,
  closeMsMax: 1_000,
  drainMsMax: 10_000,
};

export const wsCloseCodes = {
  /** The server is stopping. */
  goingAway: 1001,
  /** Binary messages. */
  unsupported: 1003,
  /** A module failed to accept the connection. */
  failed: 1011,
  /** Missing, invalid or expired credentials. */
  notAuthenticated: 4401,
  /** The client does not read or does not respond. */
  tooSlow: 4408,
} as const;

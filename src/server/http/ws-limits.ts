// Limits of a WebSocket, and the codes that it is closed with.

export interface WsLimits {
  readonly messageBytesMax: number;
  /** Until the first message has to say who it is. */
  readonly authMsMax: number;
  /** A ping goes out so often; without its pong by the next one it is over. */
  readonly heartbeatMs: number;
  readonly subscriptionsMax: number;
  /** Commands, queries and the like under way. */
  readonly requestsMax: number;
  /** Written, and not read by the client. */
  readonly unreadBytesMax: number;
  /** From saying that it is over to cutting the line. */
  readonly closeMsMax: number;
  /** Of requests under way when the server stops. */
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
  /** The server stops. */
  goingAway: 1001,
  /** Binary messages. */
  unsupported: 1003,
  /** A module could not begin with it. */
  failed: 1011,
  /** No credentials, bad ones, or they have ended. */
  notAuthenticated: 4401,
  /** It does not read, or gives no sign of life. */
  tooSlow: 4408,
} as const;

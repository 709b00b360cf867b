export interface AppSettings {
  readonly store: string;
  /** If it is set, the outbox runs on TypeORM. */
  readonly database?: string | undefined;
  /** The server that receives mails and webhooks. */
  readonly receiver: string;
}

export const APP_SETTINGS = 'APP_SETTINGS';

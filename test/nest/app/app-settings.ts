export interface AppSettings {
  readonly store: string;
  /** With it, the outbox is on TypeORM. */
  readonly database?: string;
  /** Where handlers and webhooks go. */
  readonly receiver: string;
}

export const APP_SETTINGS = 'APP_SETTINGS';

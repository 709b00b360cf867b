// The variables of the application that the outbox document leaves to it.

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new TypeError(`${name} is not set`);
  return value;
}

export const databaseUrl = (): string => variable('DATABASE_URL');
/** The server that stands for Kafka and for partnerX. */
export const receiverUrl = (): string => variable('RECEIVER_URL');
export const queuePrefix = (): string => variable('OUTBOX_QUEUE_PREFIX');

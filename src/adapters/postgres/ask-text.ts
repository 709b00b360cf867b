// A query whose answer is one text, by a statement that the connection has prepared before. The driver asks
// for a description of the columns each time and keeps a result for rows, which is a good part of what an
// append of one event costs it and the server.

import type { PreparedSql } from './postgres-connection.ts';

/** Of the driver's client, what its own queries use. */
interface DriverClient {
  /** Missing in a pool, and where another driver is behind the client. */
  readonly connection?: DriverConnection;
  /** Then it refuses queries that are not its own. */
  readonly pipeline?: boolean;
  query(query: object): unknown;
}

interface DriverConnection {
  readonly stream: { cork(): void; uncork(): void };
  /** By name, once the server has them. */
  readonly parsedStatements?: Readonly<Record<string, string | undefined>>;
  bind(config: { readonly statement: string; readonly values: readonly (string | null)[] }): void;
  execute(config: object): void;
  sync(): void;
}

/** Undefined: this connection has to be asked in the usual way. */
export function askText(
  on: object,
  { name, text }: PreparedSql,
  values: readonly unknown[],
): Promise<string> | undefined {
  const client = on as DriverClient;
  if (client.pipeline === true) return undefined;
  if (client.connection?.parsedStatements?.[name] !== text) return undefined;
  const scalars = values as readonly (string | number | boolean | null)[];
  const texts = scalars.map((value) => (value === null ? null : String(value)));
  return new Promise((resolve, reject) => {
    let answer = '';
    const query = {
      // The driver puts its time limit around it, where it has one.
      callback: (error: Error | null): void => (error === null ? resolve(answer) : reject(error)),
      submit(connection: DriverConnection): void {
        connection.stream.cork();
        connection.bind({ statement: name, values: texts });
        connection.execute({});
        connection.sync();
        connection.stream.uncork();
      },
      handleDataRow({ fields }: { readonly fields: readonly string[] }): void {
        answer = fields[0] ?? '';
      },
      handleCommandComplete: (): void => undefined,
      handleError: (error: Error): void => query.callback(error),
      handleReadyForQuery: (): void => query.callback(null),
    };
    client.query(query);
  });
}

// Identifies a database, so that roles can find out whether they commit together.

export interface DatabaseAddress {
  /** A host name, or the folder of a Unix socket. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly database?: string | undefined;
}

/** Returns `postgres://host:port/database`, without credentials and parameters. */
export function databaseOf({ host, port, database }: DatabaseAddress): string {
  const { PGHOST = 'localhost', PGPORT = '5432', PGDATABASE = '' } = process.env;
  // An empty value means the default, as for the driver.
  const place = host || PGHOST;
  const name = place.startsWith('/') ? place : place.toLowerCase();
  return `postgres://${name}:${port || PGPORT}/${database || PGDATABASE}`;
}

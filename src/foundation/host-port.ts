export interface HostPort {
  /** IPv6 addresses have brackets: `[::1]`. */
  readonly host: string;
  readonly port: number;
}

/** Parses `host:port`, or `host` with the default port; undefined: not of this form. */
export function parseHostPort(text: string, portDefault: number): HostPort | undefined {
  const pattern = /^(?<host>\[[0-9a-f:.]+\]|[^:/@[\]\s]+)(?::(?<port>\d{1,5}))?$/i;
  const parts = pattern.exec(text)?.groups;
  const port = Number(parts?.['port'] ?? portDefault);
  return parts === undefined || port < 1 || port > 65_535
    ? undefined
    : { host: parts['host'] ?? '', port };
}

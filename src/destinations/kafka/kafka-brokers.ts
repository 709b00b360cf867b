// Which brokers to ask first, from a list or from one text as environment variables hold it.

import { MillraceError } from '../../foundation/error.ts';

const portDefault = 9_092;

/** `broker-1:9092,broker-2` or a list of such; any one of them leads to the others. */
export function parseBrokers(brokers: string | readonly string[]): readonly string[] {
  const given = typeof brokers === 'string' ? brokers.split(',') : brokers;
  const named = given.map((each) => each.trim()).filter((each) => each !== '');
  if (named.length === 0) throw invalid();
  return named.map((each) => {
    const parts = /^(?<host>\[[0-9a-f:.]+\]|[^:/@[\]\s]+)(?::(?<port>\d{1,5}))?$/i.exec(
      each,
    )?.groups;
    const port = Number(parts?.['port'] ?? portDefault);
    if (parts === undefined || port < 1 || port > 65_535) throw invalid();
    return `${parts['host'] ?? ''}:${port}`;
  });
}

/** What was given is not quoted: it may be a URL with a password. */
function invalid(): MillraceError {
  return new MillraceError(
    'CONFIG_INVALID',
    'the brokers of Kafka: host:port each, in a list or with commas between them; TLS and SASL are options',
    { details: { field: 'brokers' } },
  );
}

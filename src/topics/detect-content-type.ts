// Detects the content type of a file by its first bytes.

export interface DetectedType {
  readonly type: string;
  /** With its dot. */
  readonly extension: string;
}

const signatures: readonly (readonly [at: number, hex: string, type: string, extension: string])[] =
  [
    [0, '89504e470d0a1a0a', 'image/png', '.png'],
    [0, 'ffd8ff', 'image/jpeg', '.jpg'],
    [0, '474946383761', 'image/gif', '.gif'],
    [0, '474946383961', 'image/gif', '.gif'],
    [8, '57454250', 'image/webp', '.webp'],
    [0, '424d', 'image/bmp', '.bmp'],
    [0, '255044462d', 'application/pdf', '.pdf'],
    [0, '504b0304', 'application/zip', '.zip'],
    [0, '1f8b', 'application/gzip', '.gz'],
    [0, '425a68', 'application/x-bzip2', '.bz2'],
    [0, 'fd377a585a00', 'application/x-xz', '.xz'],
    [0, '28b52ffd', 'application/zstd', '.zst'],
    [0, '377abcaf271c', 'application/x-7z-compressed', '.7z'],
    [0, '494433', 'audio/mpeg', '.mp3'],
    [0, 'fffb', 'audio/mpeg', '.mp3'],
    [0, '664c6143', 'audio/flac', '.flac'],
    [8, '57415645', 'audio/wav', '.wav'],
    [0, '4f676753', 'application/ogg', '.ogg'],
    [4, '6674797069736f6d', 'video/mp4', '.mp4'],
    [4, '667479706d703432', 'video/mp4', '.mp4'],
    [0, '1a45dfa3', 'video/webm', '.webm'],
    [0, '7f454c46', 'application/x-elf', ''],
    [0, '0061736d', 'application/wasm', '.wasm'],
    [0, '53514c69746520666f726d6174203300', 'application/vnd.sqlite3', '.sqlite'],
  ];

/** The name decides for Android packages, which are ordinary archives. */
export function detectContentType(head: Buffer, filename: string): DetectedType {
  if (filename.toLowerCase().endsWith('.apk')) {
    return { type: 'application/vnd.android.package-archive', extension: '.apk' };
  }
  for (const [at, hex, type, extension] of signatures) {
    if (head.subarray(at, at + hex.length / 2).toString('hex') === hex) {
      return { type, extension: extension === '' ? '.bin' : extension };
    }
  }
  return textType(head) ?? { type: 'application/octet-stream', extension: '.bin' };
}

function textType(head: Buffer): DetectedType | undefined {
  // No text contains these control characters.
  if (
    head
      .subarray(0, 3_072)
      .some((byte) => byte < 9 || (byte > 13 && byte < 27) || (byte > 27 && byte < 32))
  ) {
    return undefined;
  }
  const start = head.subarray(0, 3_072).toString('latin1').trimStart();
  if (/^<!doctype html|^<html|^<head|^<body|^<script|^<table|^<div/i.test(start)) {
    return { type: 'text/html; charset=utf-8', extension: '.html' };
  }
  if (start.startsWith('<?xml')) return { type: 'text/xml; charset=utf-8', extension: '.xml' };
  if (/^[{[]/.test(start) && isJson(head)) return { type: 'application/json', extension: '.json' };
  const charset = isUtf8(head) ? 'utf-8' : 'iso-8859-1';
  return { type: `text/plain; charset=${charset}`, extension: '.txt' };
}

function isJson(head: Buffer): boolean {
  try {
    return typeof JSON.parse(head.toString('utf8')) === 'object';
  } catch {
    return false;
  }
}

function isUtf8(head: Buffer): boolean {
  // The last character of `head` may be incomplete.
  const text = head.toString('utf8');
  const at = text.indexOf('\ufffd');
  return at === -1 || at >= text.length - 3;
}

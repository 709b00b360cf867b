// Cases for every way to publish a message.

import { rejectedWith, taken, type NtfyCase } from './ntfy-case.ts';

const json = (value: unknown): string => JSON.stringify(value);
const priorities: readonly (readonly [string, number])[] = [
  ['1', 1],
  ['min', 1],
  ['2', 2],
  ['low', 2],
  ['3', 3],
  ['default', 3],
  ['4', 4],
  ['HIGH', 4],
  ['5', 5],
  ['max', 5],
  ['urgent', 5],
];

const view = { action: 'view', label: 'Open', clear: false, url: 'https://e.x/a' };

export const publishCases: readonly NtfyCase[] = [
  taken('accepts a body by POST', { body: 'hello' }, { message: 'hello' }),
  taken('accepts a body by PUT', { method: 'PUT', body: 'hello' }, { message: 'hello' }),
  taken('trims a body', { body: '  a\n b \n' }, { message: 'a\n b' }),
  taken('uses the message triggered for an empty body', {}, {}),
  taken(
    'accepts the message in a header',
    { headers: { 'X-Message': 'by header' } },
    { message: 'by header' },
  ),
  taken(
    'prefers the body to the header',
    { headers: { m: 'header' }, body: 'body' },
    { message: 'body' },
  ),
  taken(
    'converts \\n in a header to line breaks',
    { headers: { Message: 'a\\nb' } },
    { message: 'a\nb' },
  ),
  taken('keeps \\n in a body unchanged', { body: 'a\\nb' }, { message: 'a\\nb' }),
  taken(
    'accepts GET /publish with a query',
    { method: 'GET', path: '/{t}/publish?message=hi&title=T&p=4' },
    { message: 'hi', title: 'T', priority: 4 },
  ),
  taken('accepts GET /send', { method: 'GET', path: '/{t}/send?m=hi' }, { message: 'hi' }),
  taken('accepts GET /trigger', { method: 'GET', path: '/{t}/trigger' }, {}),
  taken(
    'treats POST /publish as a sequence id',
    { path: '/{t}/publish', body: 'x' },
    { message: 'x', sequence_id: 'publish' },
  ),
  taken(
    'accepts a title',
    { headers: { Title: 'A title' }, body: 'x' },
    { title: 'A title', message: 'x' },
  ),
  taken(
    'accepts a title as t',
    { headers: { t: 'A title' }, body: 'x' },
    { title: 'A title', message: 'x' },
  ),
  taken(
    'reads raw UTF-8 in headers',
    { headers: { 'X-Title': 'Größe 🎉' }, body: 'x' },
    { title: 'Größe 🎉', message: 'x' },
  ),
  taken(
    'reads encoded words, base64',
    { headers: { Title: '=?UTF-8?B?w6TDtsO8?=' }, body: 'x' },
    { title: 'äöü', message: 'x' },
  ),
  taken(
    'reads encoded words, quoted',
    { headers: { Title: '=?utf-8?q?Hello_W=C3=B6rld?= plain' }, body: 'x' },
    { title: 'Hello Wörld plain', message: 'x' },
  ),
  taken(
    'joins adjacent encoded words',
    { headers: { Title: '=?UTF-8?B?w6Q=?= =?UTF-8?B?w7Y=?=' }, body: 'x' },
    { title: 'äö', message: 'x' },
  ),
  taken(
    'keeps encoded words of unknown charsets unchanged',
    { headers: { Title: '=?KOI8-R?B?w6Q=?=' }, body: 'x' },
    { title: '=?KOI8-R?B?w6Q=?=', message: 'x' },
  ),
  taken(
    'prefers the header to the query',
    { path: '/{t}?title=query', headers: { Title: 'header' }, body: 'x' },
    { title: 'header', message: 'x' },
  ),
  taken(
    'accepts query names in lower case only',
    { path: '/{t}?Title=no&title=yes', body: 'x' },
    { title: 'yes', message: 'x' },
  ),
  taken(
    'uses the first alias that is not empty',
    { headers: { 'X-Title': ' ', t: 'short' }, body: 'x' },
    { title: 'short', message: 'x' },
  ),
  ...priorities.map(([text, priority]) =>
    taken(
      `reads the priority ${text}`,
      { headers: { Priority: text }, body: 'x' },
      { priority, message: 'x' },
    ),
  ),
  taken(
    'ignores the priority of RFC 9218',
    { headers: { Priority: 'u=3, i' }, body: 'x' },
    { message: 'x' },
  ),
  taken(
    'uses another alias after the priority of RFC 9218',
    { path: '/{t}?p=5', headers: { Priority: 'u=1' }, body: 'x' },
    { message: 'x', priority: 5 },
  ),
  rejectedWith('rejects the priority 6', { headers: { 'X-Priority': '6' }, body: 'x' }, 40007),
  rejectedWith(
    'rejects the priority 0 in a header',
    { headers: { 'X-Priority': '0' }, body: 'x' },
    40007,
  ),
  rejectedWith('rejects an unknown priority', { headers: { prio: 'important' }, body: 'x' }, 40007),
  taken(
    'accepts tags',
    { headers: { Tags: 'warning, skull,,a b ' }, body: 'x' },
    { tags: ['warning', 'skull', 'a b'], message: 'x' },
  ),
  taken(
    'accepts tags as ta in the query',
    { path: '/{t}?ta=a,b', body: 'x' },
    { tags: ['a', 'b'], message: 'x' },
  ),
  taken(
    'accepts a click URL',
    { headers: { Click: 'geo:1,2' }, body: 'x' },
    { click: 'geo:1,2', message: 'x' },
  ),
  taken(
    'accepts an icon',
    { headers: { Icon: 'https://e.x/i.png' }, body: 'x' },
    { icon: 'https://e.x/i.png', message: 'x' },
  ),
  rejectedWith(
    'rejects an icon that is not a URL',
    { headers: { Icon: 'file:///i.png' }, body: 'x' },
    40021,
  ),
  taken(
    'accepts markdown by header',
    { headers: { Markdown: 'yes' }, body: '**x**' },
    { content_type: 'text/markdown', message: '**x**' },
  ),
  taken(
    'accepts markdown by content type',
    { headers: { 'Content-Type': 'text/markdown' }, body: 'x' },
    { content_type: 'text/markdown', message: 'x' },
  ),
  taken(
    'treats only yes, true and 1 as true',
    { headers: { md: 'on' }, body: 'x' },
    { message: 'x' },
  ),
  taken(
    'does not store a message without cache',
    { headers: { Cache: 'no' }, body: 'x' },
    { message: 'x' },
  ),
  taken(
    'accepts a sequence id in the path',
    { path: '/{t}/job-1', body: 'x' },
    { message: 'x', sequence_id: 'job-1' },
  ),
  taken(
    'accepts a sequence id in a header',
    { headers: { 'X-Sequence-ID': 'job_2' }, body: 'x' },
    { message: 'x', sequence_id: 'job_2' },
  ),
  taken(
    'accepts a sequence id as sid',
    { path: '/{t}?sid=s3', body: 'x' },
    { message: 'x', sequence_id: 's3' },
  ),
  taken(
    'prefers the sequence id of the path to the header',
    { path: '/{t}/path', headers: { sid: 'header' }, body: 'x' },
    { message: 'x', sequence_id: 'path' },
  ),
  rejectedWith(
    'rejects an invalid sequence id',
    { headers: { 'X-Sequence-ID': 'no spaces' }, body: 'x' },
    40049,
  ),
  rejectedWith(
    'rejects e-mail if it is not enabled',
    { headers: { Email: 'a@b.example' }, body: 'x' },
    40001,
  ),
  rejectedWith(
    'rejects an invalid e-mail address',
    { headers: { 'X-E-Mail': 'nobody' }, body: 'x' },
    40050,
  ),
  rejectedWith('rejects phone calls', { headers: { Call: 'yes' }, body: 'x' }, 40032),
  taken(
    'accepts the URL of a file',
    { headers: { Attach: 'https://e.x/a/b.jpg' } },
    {
      message: 'You received a file: b.jpg',
      attachment: { name: 'b.jpg', url: 'https://e.x/a/b.jpg' },
    },
  ),
  taken(
    'accepts the URL of a file with a name and a message',
    { headers: { a: 'http://e.x/?q=1', f: 'n.txt' }, body: 'look' },
    { message: 'look', attachment: { name: 'n.txt', url: 'http://e.x/?q=1' } },
  ),
  taken(
    'names a file whose URL has no name',
    { headers: { Attach: 'https://e.x' } },
    {
      message: 'You received a file: attachment',
      attachment: { name: 'attachment', url: 'https://e.x' },
    },
  ),
  rejectedWith(
    'rejects an attachment URL that is not HTTP',
    { headers: { Attach: 'ftp://e.x/a' } },
    40013,
  ),
  taken(
    'stores a body with a file name as a file',
    { headers: { Filename: 'a.txt' }, body: 'some text' },
    {
      message: 'You received a file: a.txt',
      attachment: {
        name: 'a.txt',
        type: 'text/plain; charset=utf-8',
        size: 9,
        expires: 'soon',
        url: '{url}/file/{id}.txt',
      },
    },
  ),
  taken(
    'stores a file with a message',
    { headers: { f: 'a.txt', Message: 'here' }, body: 'some text' },
    {
      message: 'here',
      attachment: {
        name: 'a.txt',
        type: 'text/plain; charset=utf-8',
        size: 9,
        expires: 'soon',
        url: '{url}/file/{id}.txt',
      },
    },
  ),
  taken(
    'treats 4,095 bytes as a message',
    { body: 'a'.repeat(4_095) },
    { message: 'a'.repeat(4_095) },
  ),
  taken(
    'treats 4,096 bytes as a file',
    { body: 'a'.repeat(4_096) },
    {
      message: 'You received a file: attachment.txt',
      attachment: {
        name: 'attachment.txt',
        type: 'text/plain; charset=utf-8',
        size: 4_096,
        expires: 'soon',
        url: '{url}/file/{id}.txt',
      },
    },
  ),
  taken(
    'treats bytes that are not UTF-8 as a file',
    { body: Uint8Array.of(0, 255, 254, 1, 2, 3, 0) },
    {
      message: 'You received a file: attachment.bin',
      attachment: {
        name: 'attachment.bin',
        type: 'application/octet-stream',
        size: 7,
        expires: 'soon',
        url: '{url}/file/{id}.bin',
      },
    },
  ),
  taken(
    'detects a picture by its bytes',
    { body: Uint8Array.from(Buffer.from('89504e470d0a1a0a0000000d49484452ff', 'hex')) },
    {
      message: 'You received a file: attachment.png',
      attachment: {
        name: 'attachment.png',
        type: 'image/png',
        size: 17,
        expires: 'soon',
        url: '{url}/file/{id}.png',
      },
    },
  ),
  rejectedWith(
    'rejects a body that is not UTF-8 with an attachment URL',
    { headers: { Attach: 'https://e.x/a' }, body: Uint8Array.of(255, 254) },
    40011,
  ),
  taken(
    'accepts UnifiedPush text unchanged',
    { path: '/{t}?up=1', body: ' text \n' },
    { message: ' text \n' },
  ),
  taken(
    'encodes UnifiedPush bytes as base64',
    { path: '/{t}?up=1', body: Uint8Array.of(255, 1) },
    { message: '/wE=', encoding: 'base64' },
  ),
  taken(
    'truncates UnifiedPush at the limit',
    { headers: { 'X-UnifiedPush': '1' }, body: 'b'.repeat(5_000) },
    { message: 'b'.repeat(4_096) },
  ),
  taken(
    'detects UnifiedPush by the content encoding',
    { headers: { 'Content-Encoding': 'aes128gcm' }, body: ' x ' },
    { message: ' x ' },
  ),
  taken(
    'accepts a poll request',
    { headers: { 'X-Poll-ID': 'abc' }, body: 'ignored' },
    { event: 'poll_request', message: 'New message', poll_id: 'abc' },
  ),
  taken(
    'accepts short actions',
    {
      headers: {
        Actions:
          "view, Open, https://e.x/a; http, 'Stop, now', https://e.x/b, method=put, headers.X-A=1, body='{\"a\":1}', clear=true",
      },
      body: 'x',
    },
    {
      message: 'x',
      actions: [
        view,
        {
          action: 'http',
          label: 'Stop, now',
          clear: true,
          url: 'https://e.x/b',
          method: 'PUT',
          headers: { 'X-A': '1' },
          body: '{"a":1}',
        },
      ],
    },
  ),
  taken(
    'accepts actions with keys',
    { headers: { Actions: 'action=broadcast, label=Go, extras.cmd=pic, intent=io.x' }, body: 'x' },
    {
      message: 'x',
      actions: [
        { action: 'broadcast', label: 'Go', clear: false, intent: 'io.x', extras: { cmd: 'pic' } },
      ],
    },
  ),
  taken(
    'accepts a copy action',
    { headers: { Actions: 'copy, Code, 1234' }, body: 'x' },
    { message: 'x', actions: [{ action: 'copy', label: 'Code', clear: false, value: '1234' }] },
  ),
  taken(
    'accepts actions as JSON',
    {
      headers: { Actions: json([{ action: 'VIEW', label: 'Open', url: 'https://e.x/a' }]) },
      body: 'x',
    },
    { message: 'x', actions: [view] },
  ),
  rejectedWith(
    'rejects four actions',
    { headers: { Actions: 'view,a,u;view,b,u;view,c,u;view,d,u' }, body: 'x' },
    40018,
  ),
  rejectedWith('rejects an unknown action', { headers: { Actions: 'dance, a' }, body: 'x' }, 40018),
  rejectedWith(
    'rejects an action without a label',
    { headers: { Actions: 'view' }, body: 'x' },
    40018,
  ),
  rejectedWith(
    'rejects an action without a URL',
    { headers: { Actions: 'view, Open' }, body: 'x' },
    40018,
  ),
  rejectedWith(
    'rejects an unknown key of an action',
    { headers: { Actions: 'view, Open, https://e.x, what=1' }, body: 'x' },
    40018,
  ),
  rejectedWith(
    'rejects an unterminated quote',
    { headers: { Actions: 'view, "Open' }, body: 'x' },
    40018,
  ),
  rejectedWith(
    'rejects a body for an action with GET',
    { headers: { Actions: 'http, a, https://e.x, method=GET, body=x' }, body: 'x' },
    40018,
  ),
  rejectedWith('rejects actions in invalid JSON', { headers: { Actions: '[{' }, body: 'x' }, 40018),
  rejectedWith('rejects reserved topics', { path: '/docs', body: 'x' }, 40010),
  rejectedWith(
    'rejects reserved topics with a sequence id',
    { path: '/app/one', body: 'x' },
    40010,
  ),
  rejectedWith('rejects an invalid topic', { path: '/no.dots', body: 'x' }, 40401),
  rejectedWith(
    'rejects a topic of 65 characters',
    { path: `/${'a'.repeat(65)}`, body: 'x' },
    40401,
  ),
  rejectedWith('rejects other methods', { method: 'PATCH', body: 'x' }, 40401),
  rejectedWith('rejects several topics at once', { path: '/{t},b', body: 'x' }, 40401),
];

export const jsonCases: readonly NtfyCase[] = [
  rejectedWith('rejects invalid JSON', { path: '/', body: '{' }, 40024),
  rejectedWith('rejects JSON that is not an object', { path: '/', body: '[1]' }, 40024),
  rejectedWith('rejects JSON without a topic', { path: '/', body: '{"message":"x"}' }, 40009),
  rejectedWith(
    'rejects JSON with an invalid topic',
    { path: '/', body: '{"topic":"no spaces"}' },
    40009,
  ),
  rejectedWith(
    'rejects JSON with a reserved topic',
    { path: '/', body: '{"topic":"login"}' },
    40010,
  ),
  rejectedWith(
    'rejects JSON with a number as the title',
    { path: '/', body: '{"topic":"a","title":1}' },
    40024,
  ),
  rejectedWith(
    'rejects JSON with a string as the priority',
    { path: '/', body: '{"topic":"a","priority":"high"}' },
    40024,
  ),
  rejectedWith(
    'rejects JSON with the priority 9',
    { path: '/', body: '{"topic":"a","priority":9}' },
    40007,
  ),
  rejectedWith(
    'rejects JSON of 8,192 bytes',
    { path: '/', body: json({ topic: 'a', message: 'x'.repeat(8_192) }) },
    41303,
  ),
  rejectedWith(
    'rejects JSON with an invalid action',
    { path: '/', body: json({ topic: 'a', actions: [{ action: 'dance', label: 'x' }] }) },
    40018,
  ),
];

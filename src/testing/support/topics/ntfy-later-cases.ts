// Scheduled messages, updates of messages, templates.

import assert from 'node:assert/strict';
import {
  lines,
  newTopic,
  poll,
  publish,
  rejectedWith,
  send,
  taken,
  type CaseServer,
  type Message,
  type NtfyCase,
} from './ntfy-case.ts';

const inSeconds = (seconds: number): string => String(Math.floor(Date.now() / 1_000) + seconds);

/** Delivered about `seconds` from now. */
function delayed(text: string, seconds: number): NtfyCase {
  return {
    title: `delivers in ${seconds} s by '${text}'`,
    async run(server) {
      const topic = newTopic();
      const before = Date.now() / 1_000;
      const message = await publish(server, topic, { headers: { Delay: text }, body: 'x' });
      const after = Date.now() / 1_000;
      // Times have a resolution of one second, and the publish itself takes time.
      assert.ok(message.time >= before + seconds - 2, String(message.time - before));
      assert.ok(message.time <= after + seconds + 2, String(message.time - after));
      assert.equal(message.expires, message.time + 43_200);
      assert.deepEqual(await poll(server, topic), []);
      assert.deepEqual(await poll(server, topic, 'scheduled=1'), [message]);
    },
  };
}

/** Delivered at a time of day, today or tomorrow. */
function atHour(text: string, hour: number, minute: number, days?: number): NtfyCase {
  return {
    title: `delivers at ${hour}:${minute} by '${text}'`,
    async run(server) {
      const before = new Date();
      const message = await publish(server, newTopic(), { headers: { At: text }, body: 'x' });
      const at = new Date(message.time * 1_000);
      assert.deepEqual([at.getHours(), at.getMinutes()], [hour, minute]);
      assert.ok(at > before);
      if (days === undefined) return;
      // Two dates are possible around midnight.
      const possible = [before, new Date()].map((day) => {
        day.setDate(day.getDate() + days);
        return day.getDate();
      });
      assert.ok(possible.includes(at.getDate()), `${at.toISOString()} is not ${text}`);
    },
  };
}

const scheduledOf = (server: CaseServer, topic: string): Promise<readonly Message[]> =>
  poll(server, topic, 'sched=1');

export const delayCases: readonly NtfyCase[] = [
  delayed('30s', 30),
  delayed('1h30m', 5_400),
  delayed('20 min', 1_200),
  delayed('2 hours', 7_200),
  delayed('1 day', 86_400),
  delayed('in 45 minutes', 2_700),
  {
    title: 'delivers at a unix time',
    async run(server) {
      const at = inSeconds(100);
      const message = await publish(server, newTopic(), { headers: { In: at }, body: 'x' });
      assert.equal(message.time, Number(at));
    },
  },
  atHour('tomorrow, 3:30pm', 15, 30, 1),
  atHour('tomorrow 10am', 10, 0, 1),
  atHour('9am', 9, 0),
  rejectedWith('rejects a delay below 10 s', { headers: { Delay: '9s' }, body: 'x' }, 40005),
  rejectedWith('rejects a delay above 3 days', { headers: { Delay: '73h' }, body: 'x' }, 40006),
  rejectedWith(
    'rejects a delay that cannot be parsed',
    { headers: { Delay: 'soonish' }, body: 'x' },
    40004,
  ),
  rejectedWith(
    'rejects a delay in the past',
    { headers: { Delay: '1500000000' }, body: 'x' },
    40004,
  ),
  rejectedWith(
    'rejects a delay without cache',
    { headers: { Delay: '1h', Cache: 'no' }, body: 'x' },
    40002,
  ),
  rejectedWith(
    'rejects a file that expires before it is delivered',
    { headers: { Delay: '10h', Filename: 'a' }, body: 'x' },
    40015,
  ),
  {
    title: 'replaces a scheduled message by its sequence id',
    async run(server) {
      const topic = newTopic();
      await publish(server, topic, { path: '/{t}/s1', headers: { Delay: '1h' }, body: 'first' });
      const second = await publish(server, topic, {
        path: '/{t}/s1',
        headers: { Delay: '2h' },
        body: 'second',
      });
      assert.deepEqual(await scheduledOf(server, topic), [second]);
    },
  },
  {
    title: 'replaces a scheduled message by one that is delivered now',
    async run(server) {
      const topic = newTopic();
      await publish(server, topic, { path: '/{t}/s1', headers: { Delay: '1h' }, body: 'first' });
      const now = await publish(server, topic, { path: '/{t}/s1', body: 'now' });
      assert.deepEqual(await scheduledOf(server, topic), [now]);
    },
  },
  {
    title: 'cancels a scheduled message by DELETE',
    async run(server) {
      const topic = newTopic();
      await publish(server, topic, { path: '/{t}/s1', headers: { Delay: '1h' }, body: 'first' });
      const other = await publish(server, topic, {
        path: '/{t}/s2',
        headers: { Delay: '1h' },
        body: 'other',
      });
      const gone = await publish(server, topic, { method: 'DELETE', path: '/{t}/s1' });
      assert.equal(gone.event, 'message_delete');
      assert.deepEqual(await scheduledOf(server, topic), [gone, other]);
    },
  },
  {
    title: 'cancels a scheduled message by its id',
    async run(server) {
      const topic = newTopic();
      const { id } = await publish(server, topic, { headers: { Delay: '1h' }, body: 'first' });
      const gone = await publish(server, topic, { method: 'DELETE', path: `/{t}/${id}` });
      assert.deepEqual(await scheduledOf(server, topic), [gone]);
    },
  },
];

const changed = (title: string, method: string, path: string, event: string): NtfyCase => ({
  title,
  async run(server) {
    const topic = newTopic();
    const first = await publish(server, topic, { path: '/{t}/s1', body: 'x' });
    const change = await publish(server, topic, { method, path });
    const { event: was, sequence_id: sequenceId, message, title: none } = change;
    assert.deepEqual([was, sequenceId, message, none], [event, 's1', undefined, undefined]);
    assert.equal(change.expires, change.time + 43_200);
    assert.deepEqual(await poll(server, topic), [first, change]);
  },
});

export const changeCases: readonly NtfyCase[] = [
  changed('deletes by DELETE', 'DELETE', '/{t}/s1', 'message_delete'),
  changed('deletes by GET', 'GET', '/{t}/s1/delete', 'message_delete'),
  changed('clears by PUT', 'PUT', '/{t}/s1/clear', 'message_clear'),
  changed('clears by GET', 'GET', '/{t}/s1/clear', 'message_clear'),
  changed('clears by /read', 'PUT', '/{t}/s1/read', 'message_clear'),
  rejectedWith('does not clear by POST', { path: '/{t}/s1/clear' }, 40401),
  rejectedWith('does not delete by PUT', { method: 'PUT', path: '/{t}/s1/delete' }, 40401),
  {
    title: 'shows changes as empty lines of /raw and events without a name of /sse',
    async run(server) {
      const topic = newTopic();
      await publish(server, topic, { path: '/{t}/s1', body: 'a\nb' });
      const gone = await publish(server, topic, { method: 'DELETE', path: '/{t}/s1' });
      const raw = await send(server, topic, { method: 'GET', path: '/{t}/raw?poll=1' });
      assert.equal(await raw.text(), 'a b\n\n');
      const sse = await send(server, topic, { method: 'GET', path: '/{t}/sse?poll=1' });
      const events = (await sse.text()).split('\n\n');
      assert.equal(events.length, 3);
      assert.deepEqual(lines((events[1] ?? '').replace(/^data: /, '')), [gone]);
    },
  },
];

const template = (
  title: string,
  headers: Readonly<Record<string, string>>,
  body: unknown,
  expected: Readonly<Record<string, unknown>>,
): NtfyCase =>
  taken(title, { headers: { Template: 'yes', ...headers }, body: JSON.stringify(body) }, expected);
const badTemplate = (title: string, message: string, code: number): NtfyCase =>
  rejectedWith(title, { headers: { Template: 'yes', Message: message }, body: '{"a":1}' }, code);

const alert = {
  labels: { alertname: 'Disk', instance: 'a:1', severity: 'high' },
  startsAt: 'T1',
  annotations: { summary: 'S' },
  generatorURL: 'http://g',
};

export const templateCases: readonly NtfyCase[] = [
  template(
    'renders a template',
    { Message: 'Error: {{.error.desc}}', Title: '{{.host}}: {{.n}}' },
    { error: { desc: 'bad' }, host: 'web', n: 1.5 },
    { message: 'Error: bad', title: 'web: 1.5' },
  ),
  template(
    'renders a template of the priority',
    { m: 'x', Priority: '{{if .bad}}5{{else}}1{{end}}' },
    { bad: true },
    { message: 'x', priority: 5 },
  ),
  template(
    'iterates over lists',
    { m: '{{range $i, $e := .list}}{{$i}}={{$e}};{{end}}' },
    { list: ['a', 'b'] },
    { message: '0=a;1=b;' },
  ),
  template(
    'prints missing values',
    { m: '{{.none}} {{.a.b.c}}' },
    { a: {} },
    { message: '<no value> <no value>' },
  ),
  template(
    'supports else, with, variables and trimming',
    {
      m: '{{- $x := .a -}} {{ if eq $x "b" }}B{{ else if eq $x "c" }}C{{ else }}D{{ end }} {{with .w}}{{.v}}{{end}}',
    },
    { a: 'c', w: { v: 1 } },
    { message: 'C 1' },
  ),
  template(
    'calls functions',
    {
      m: '{{upper .a}} {{.a | trunc 2}} {{default "d" .none}} {{len .l}} {{join "-" .l}} {{index .l 1}} {{printf "%s|%5s" .a "x"}} {{title "two words"}} {{replace "l" "L" .a}}',
    },
    { a: 'hello', l: ['p', 'q'] },
    { message: 'HELLO he d 2 p-q q hello|    x Two Words heLLo' },
  ),
  template(
    'prints lists and objects as Go does',
    { m: '{{.l}} {{.o}} {{.t}} {{.n}}' },
    { l: [1, 'a', null], o: { b: 2, a: [] }, t: true, n: null },
    { message: '[1 a <nil>] map[a:[] b:2] true <no value>' },
  ),
  template(
    'turns \\n around a template into line breaks',
    { m: 'a\\n{{.x}}' },
    { x: 'b' },
    { message: 'a\nb' },
  ),
  badTemplate('rejects an incomplete template', '{{.a', 40043),
  badTemplate('rejects an unknown function', '{{nothing .a}}', 40043),
  badTemplate('rejects an unmatched end', '{{end}}', 40043),
  badTemplate('rejects the function call', '{{call .a}}', 40044),
  badTemplate('rejects the action define', '{{define "x"}}y{{end}}', 40044),
  badTemplate('reports a template that calls fail', '{{fail "no"}}', 40045),
  badTemplate('rejects a comparison of different types', '{{if eq .a 1}}x{{end}}', 40045),
  badTemplate('rejects a range over a string', '{{range "abc"}}x{{end}}', 40045),
  rejectedWith(
    'rejects a template if the body is not JSON',
    { headers: { Template: 'yes', m: 'x' }, body: 'no' },
    40042,
  ),
  rejectedWith(
    'rejects an unknown template',
    { headers: { Template: 'nobody' }, body: '{}' },
    40047,
  ),
  rejectedWith(
    'rejects a template that renders an invalid priority',
    { headers: { Template: '1', m: 'x', p: '{{.p}}' }, body: '{"p":"9"}' },
    40007,
  ),
  taken(
    'renders a webhook of Grafana',
    {
      path: '/{t}?template=grafana',
      body: JSON.stringify({ status: 'firing', title: 'Load', message: 'high' }),
    },
    { title: '🚨 Load', message: 'high' },
  ),
  taken(
    'renders a webhook of Alertmanager',
    {
      headers: { Template: 'alertmanager' },
      body: JSON.stringify({ status: 'firing', receiver: 'r', alerts: [alert] }),
    },
    {
      title: '🚨 Alert: Disk',
      message:
        'Status: Firing\nReceiver: r\nAlert: Disk\nInstance: a:1\nSeverity: high\nStarts at: T1\nSummary: S\nSource: http://g',
    },
  ),
  taken(
    'renders a star of GitHub',
    {
      headers: { Template: 'github' },
      body: JSON.stringify({
        action: 'created',
        starred_at: 'x',
        sender: { login: 'me', html_url: 'u' },
        repository: { name: 'r', html_url: 'h' },
      }),
    },
    { title: '⭐ me starred r', message: 'Stargazer: u\nRepository: h' },
  ),
  taken(
    'renders an issue of GitHub',
    {
      headers: { Template: 'github' },
      body: JSON.stringify({
        action: 'opened',
        issue: {
          number: 7,
          title: 'T',
          user: { html_url: 'u' },
          html_url: 'i',
          body: 'B',
          labels: [{ name: 'bug' }],
        },
        repository: { html_url: 'h' },
      }),
    },
    {
      title: '🐛 Issue opened: #7 T',
      message: 'Opened by: u\nRepository: h\nIssue link: i\nLabels: bug \n\nDescription:\nB',
    },
  ),
  rejectedWith(
    'rejects other webhooks of GitHub',
    { headers: { Template: 'github' }, body: '{"action":"x"}' },
    40045,
  ),
];

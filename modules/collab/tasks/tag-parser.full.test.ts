import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { collabLimits, type TagCommand } from '../fields.ts';
import { parseTags, tagParserVersion } from './tag-parser.ts';

const isLongForm = Number(process.env['MILLRACE_SOAK'] ?? 0) > 0;

/**
 * A second implementation of the rules, character by character, written from the requirements and not from the parser:
 * returns `[name, value]` for each known tag.
 */
function scan(content: string): { tags: [string, string][]; text: string } {
  const names = 'task bug epic status assignee priority due title severity'.split(' ');
  const isBlank = (char: string): boolean => char.trim() === '';
  const tags: [string, string][] = [];
  const text: string[] = [];
  const chars = [...content.replaceAll('\r\n', '\n').replaceAll('\r', '\n').split(''), '\n'];
  let line: string[] = [];
  for (const char of chars) {
    if (char === '\n') {
      scanLine(line);
      line = [];
    } else line.push(char);
  }
  return { tags, text: text.join('\n') };

  function scanLine(all: readonly string[]): void {
    const from = all.findIndex((char) => !isBlank(char));
    if (from < 0) return;
    if (all[from] !== '#') {
      text.push(all.join(''));
      return;
    }
    const to = all.findLastIndex((char) => !isBlank(char));
    const rest: string[] = [];
    let at = from;
    while (at <= to) {
      // The tag ends at a space followed by `#`.
      let end = at + 1;
      while (end <= to && !(all[end] === ' ' && all[end + 1] === '#' && end + 1 <= to)) end += 1;
      let word = '';
      let next = at + 1;
      while (next < end && !isBlank(all[next] ?? '')) word += all[next++] ?? '';
      const value = all.slice(next, end).join('').trim();
      if (names.includes(word)) tags.push([word, value]);
      else rest.push(all.slice(at, end).join('').trim());
      at = end + 1;
    }
    if (rest.length > 0) text.push(rest.join(' '));
  }
}

const nameOf = {
  ChangeStatusCommand: ['status', 'status'],
  AssignUserCommand: ['assignee', 'assignee'],
  ChangePriorityCommand: ['priority', 'priority'],
  SetDueDateCommand: ['due', 'dueDate'],
  ChangeTitleCommand: ['title', 'title'],
  SetSeverityCommand: ['severity', 'severity'],
} as const;

function plain(command: TagCommand): [string, string] {
  if (command.type === 'CreateTaskCommand') return [command.taskType, command.title];
  const [name, field] = nameOf[command.type];
  return [name, String((command as Readonly<Record<string, unknown>>)[field])];
}

function read(content: string): readonly [string, string][] {
  return parseTags(content).commands.map(plain);
}

describe('the tag grammar', () => {
  test('the parser has a version', () => {
    assert.equal(tagParserVersion, 1);
  });

  test('the message of the document has one tag and one line of text', () => {
    assert.deepEqual(parseTags('Закончил работу\n#status Done'), {
      commands: [{ type: 'ChangeStatusCommand', status: 'Done' }],
      text: 'Закончил работу',
      leftOut: 0,
    });
  });

  test('every known tag becomes its command', () => {
    const content = `#task A\n#bug B\n#epic C\n#status D\n#assignee @e\n#priority F\n#due G\n#title H\n#severity I`;
    assert.deepEqual(parseTags(content).commands, [
      { type: 'CreateTaskCommand', taskType: 'task', title: 'A' },
      { type: 'CreateTaskCommand', taskType: 'bug', title: 'B' },
      { type: 'CreateTaskCommand', taskType: 'epic', title: 'C' },
      { type: 'ChangeStatusCommand', status: 'D' },
      { type: 'AssignUserCommand', assignee: '@e' },
      { type: 'ChangePriorityCommand', priority: 'F' },
      { type: 'SetDueDateCommand', dueDate: 'G' },
      { type: 'ChangeTitleCommand', title: 'H' },
      { type: 'SetSeverityCommand', severity: 'I' },
    ]);
  });

  for (const [rule, content, tags, text] of [
    ['an unknown word is text', '#hello world', [], '#hello world'],
    ['names are case-sensitive', '#Status Done\n#STATUS Done', [], '#Status Done\n#STATUS Done'],
    ['a tag inside a line is text', 'see #status Done', [], 'see #status Done'],
    ['a tag line may be indented', ' \t #status Done ', [['status', 'Done']], ''],
    [
      'several tags stand on one line',
      '#status In Progress #priority High',
      [
        ['status', 'In Progress'],
        ['priority', 'High'],
      ],
      '',
    ],
    ['any sign next a space ends a value', '#title Fix #42 now', [['title', 'Fix']], '#42 now'],
    ['a sign inside a word ends none', '#title C#, F#', [['title', 'C#, F#']], ''],
    ['a tag needs no value', '#assignee', [['assignee', '']], ''],
    ['a value is trimmed', '#title \t x  y \t ', [['title', 'x  y']], ''],
    [
      'a name ends with its word',
      '#status: Done\n#status-Done\n#status#due',
      [],
      '#status: Done\n#status-Done\n#status#due',
    ],
    [
      'a sign alone is text',
      '# status Done\n##status Done\n#',
      [],
      '# status Done\n##status Done\n#',
    ],
    ['blank lines are skipped', '\n\n  \nHi\n\n#due\n\t\nyou', [['due', '']], 'Hi\nyou'],
    [
      'lines end in every way',
      'a\r\n#due 1\rb\n#due 2',
      [
        ['due', '1'],
        ['due', '2'],
      ],
      'a\nb',
    ],
    [
      'a property name of every object is not a tag',
      '#constructor x\n#__proto__ y',
      [],
      '#constructor x\n#__proto__ y',
    ],
    ['text from right to left', 'שלום\n#title שלום עולם', [['title', 'שלום עולם']], 'שלום'],
    ['emoji', '👩‍💻\n#title 🚀 go', [['title', '🚀 go']], '👩‍💻'],
    ['a wide sign is text', '＃status Done', [], '＃status Done'],
  ] as const) {
    test(rule, () => {
      assert.deepEqual(read(content), tags);
      assert.equal(parseTags(content).text, text);
      assert.deepEqual(scan(content), { tags, text });
    });
  }

  test('two implementations of the rules agree on every message', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ' ',
        '  ',
        '\t',
        '\n',
        '\r\n',
        '\r',
        '#',
        ' #',
        ' #',
        '\u00a0',
        '\u2028',
        '🚀',
        'é',
      ),
      fc.constantFrom('status', 'task', 'due', 'title', 'assignee', '@alex', 'Done', 'Status'),
      fc.constantFrom('#status', '#bug', '#epic', '#priority', '#severity', '#unknown', '#due'),
      fc.string({ unit: 'grapheme', maxLength: 5 }),
    );
    const message = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(message, (content) => {
        const { text, leftOut } = parseTags(content);
        assert.deepEqual({ tags: read(content), text }, scan(content));
        assert.equal(leftOut, 0);
      }),
      { numRuns: isLongForm ? 600 : 150 },
    );
  });

  test('a message of 100 kB is parsed completely', () => {
    const size = 100_000;
    for (const unit of ['#', ' #', '#status ', '#status Done #due ', '\n#', '🚀', '#task🚀 #']) {
      const content = unit.repeat(Math.ceil(size / unit.length));
      for (const each of [`#status ${content}`, `x${content}\n#status Done`]) {
        const { commands, leftOut } = parseTags(each);
        const { tags } = scan(each);
        assert.equal(commands.length + leftOut, tags.length);
        assert.deepEqual(commands.map(plain), tags.slice(0, collabLimits.tagsMax));
      }
    }
  });

  test('a message of 4 MiB is parsed for every repeated pattern', () => {
    const size = 4 * 1_048_576;
    // A parser that is not linear would not end within the time limit of this file.
    for (const [unit, tags] of [
      ['#status Done #due ', 2],
      ['#', 0],
      [' #', 0],
      ['\t ', 0],
    ] as const) {
      const repeats = Math.floor(size / unit.length);
      const { commands, leftOut } = parseTags(unit.repeat(repeats));
      assert.equal(commands.length + leftOut, tags * repeats, JSON.stringify(unit));
    }
  });

  test('a thousand tags are parsed, and the others are counted', () => {
    assert.equal(parseTags('#due\n'.repeat(1_000)).commands.length, 1_000);
    assert.deepEqual(parseTags('#due '.repeat(1_500)).leftOut, 500);
  });
});

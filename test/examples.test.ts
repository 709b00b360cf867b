import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';

const root = fileURLToPath(new URL('..', import.meta.url));

interface Example {
  readonly where: string;
  readonly code: string;
}

test('every exported value of a public folder carries an example', async () => {
  const missing: string[] = [];
  for (const index of globSync(['src/*/index.ts', 'src/{adapters,nest}/*/index.ts'], {
    cwd: root,
  })) {
    const source = readFileSync(join(root, index), 'utf8');
    for (const [, names = '', file = ''] of source.matchAll(/export \{([^}]+)\} from '(.+?)';/g)) {
      const declaring = readFileSync(join(root, index, '..', file), 'utf8');
      const values = names.split(',').map((name) => name.trim());
      for (const name of values.filter((value) => value !== '' && !value.startsWith('type '))) {
        if (!documented(declaring, name)) missing.push(`${index}: ${name}`);
      }
    }
  }
  assert.deepEqual(missing, []);
});

/** As applications of Nest are compiled; nothing else here has decorators, which these would change. */
const nestOptions = {
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
  erasableSyntaxOnly: false,
};

test('every example in the sources and in the documents compiles', () => {
  const examples = [...sourceExamples(), ...documentExamples()];
  assert.ok(examples.length > 30, `only ${examples.length} examples found`);
  // All at once: the compiler learns the whole package each time.
  assert.equal(problemsOf(examples, nestOptions), '');
});

test('no example but those of Nest has syntax that Node does not run, or a decorator', () => {
  const isNest = ({ code }: Example): boolean => code.includes("'@nestjs/");
  const examples = [...sourceExamples(), ...documentExamples()].filter((each) => !isNest(each));
  assert.ok(examples.length > 30, `only ${examples.length} examples found`);
  const found = examples.filter(({ code }) => !isErasable(code));
  assert.deepEqual(
    found.map(({ where }) => where),
    [],
  );
  assert.ok(isErasable('class A { readonly a: number = 1; readonly b = 1n; }'));
  assert.ok(!isErasable('class A { constructor(private readonly a: number) {} }'));
  assert.ok(!isErasable('enum A { B }'));
  assert.ok(!isErasable('namespace A { export const b = 1; }'));
  assert.ok(!isErasable("import a = require('a');"));
  assert.ok(!isErasable('class A { @b c() {} }'));
});

const notErasable =
  /"type":"(?:TSEnumDeclaration|TSParameterProperty|TSModuleDeclaration|TSImportEqualsDeclaration|TSExportAssignment|Decorator)"/;

function isErasable(code: string): boolean {
  const { program, errors } = parseSync('example.ts', code);
  assert.deepEqual(errors, [], code);
  const text = JSON.stringify(program, (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return !notErasable.test(text);
}

function problemsOf(examples: readonly Example[], compilerOptions: object): string {
  mkdirSync(join(root, '.millrace'), { recursive: true });
  // Inside the repository, so that `millrace/…` resolves as it does for a user.
  const folder = mkdtempSync(join(root, '.millrace', 'examples-'));
  try {
    const places = new Map<string, string>();
    for (const [index, { where, code }] of examples.entries()) {
      places.set(`example-${index}.ts`, where);
      writeFileSync(join(folder, `example-${index}.ts`), `${code}\nexport {};\n`);
    }
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({
        extends: '../../tsconfig.json',
        compilerOptions: { noUnusedLocals: false, noUnusedParameters: false, ...compilerOptions },
        include: ['*.ts'],
        exclude: [],
      }),
    );
    const run = spawnSync('tsc', ['-p', folder, '--checkers', '1'], {
      cwd: root,
      encoding: 'utf8',
    });
    if (run.status === 0) return '';
    return `tsc: ${run.stdout}${run.stderr}`.replace(
      /\S*(example-\d+\.ts)/g,
      (_all, file: string) => places.get(file) ?? file,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Constants of plain data explain themselves; what is called or composed needs an example. */
function documented(source: string, name: string): boolean {
  const declaration = new RegExp(
    `(/\\*\\*(?:(?!\\*/)[^])*\\*/\\s*)?export (?:async |abstract )?(function\\*?|class|const) ${name}\\b`,
  ).exec(source);
  if (declaration === null) return false;
  const [, comment = '', kind] = declaration;
  const isData =
    kind === 'const' &&
    /^[a-z]\w*(Limits|Backoff|Codes|JsonSchema|Rules|Header|Position)$/.test(name);
  return isData || comment.includes('@example');
}

function sourceExamples(): Example[] {
  return globSync('src/**/*.ts', { cwd: root })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => {
      const source = readFileSync(join(root, file), 'utf8');
      return [...source.matchAll(/\/\*\*(?:(?!\*\/)[^])*?@example\n((?:(?!\*\/)[^])*)\*\//g)].map(
        (match) => ({
          where: `${file}:${source.slice(0, match.index).split('\n').length}`,
          code: (match[1] ?? '').replace(/^ *\* ?/gm, ''),
        }),
      );
    });
}

function documentExamples(): Example[] {
  return globSync(['README.md', '{docs,modules}/**/*.md'], { cwd: root }).flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return [...text.matchAll(/^```ts\n([^]*?)^```/gm)].map((match) => ({
      where: `${file}:${text.slice(0, match.index).split('\n').length}`,
      code: match[1] ?? '',
    }));
  });
}

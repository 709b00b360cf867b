// All functions of templates, by their results.

import assert from 'node:assert/strict';
import { newTopic, publish, send, type NtfyCase } from './ntfy-case.ts';

const data = {
  name: 'web-1',
  text: 'Hello, wörld',
  n: 3.7,
  neg: -2.5,
  list: ['b', 'a', 'b', ''],
  nested: [[1], [1], [2]],
  map: { a: 1, b: { c: 'deep' } },
  other: { a: 2 },
  nothing: null,
  yes: true,
  html: '<a href="x">&\'',
  json: '{"k":[1,"two"]}',
};

/** Template → its result. */
const made: Readonly<Record<string, string>> = {
  '{{upper .name}} {{lower .text}} {{title "hELLO big-world it\'s"}}':
    "WEB-1 hello, wörld Hello Big-World It's",
  '{{trim "  x "}}|{{trimAll "$" "$5.00$"}}|{{trimPrefix "web" .name}}|{{trimSuffix "-1" .name}}':
    'x|5.00|-1|web',
  '{{trunc 5 .text}}|{{trunc -3 "abcdef"}}|{{trunc 99 "ab"}}': 'Hello|def|ab',
  '{{substr 1 3 "abcdef"}}|{{substr -1 2 "abcdef"}}|{{substr 2 -1 "abcdef"}}': 'bc|ab|cdef',
  '{{repeat 3 "ab"}}|{{replace "-" "+" "a-b-c"}}|{{plural "one" "many" 1}}|{{plural "one" "many" (len .list)}}':
    'ababab|a+b+c|one|many',
  '{{contains "lo" .text}} {{hasPrefix "web" .name}} {{hasSuffix "x" .name}}': 'true true false',
  '{{quote .name 1 .nothing}}|{{squote .name 2}}|{{cat "a" .nothing 1 "b"}}':
    '"web-1" "1"|\'web-1\' \'2\'|a 1 b',
  'x{{indent 2 "a\nb"}}|{{nindent 1 "c"}}': 'x  a\n  b|\n c',
  '{{sha1sum "a"}} {{adler32sum "hello"}}': '86f7e437faa5a7fce15d1ddcb9eaeaea377667b8 103547413',
  '{{sha256sum "a"}}': 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb',
  '{{sha512sum "a" | trunc 16}}': '1f40fc92da241694',
  '{{toString 5}}{{toString .n}}{{toString .map}}': '53.7map[a:1 b:map[c:deep]]',
  '{{atoi "12"}} {{atoi "x"}} {{toDecimal "777"}} {{toDecimal 10}} {{toDecimal "9"}}':
    '12 0 511 8 0',
  '{{seq 5}}|{{seq -2}}|{{seq 2 4}}|{{seq 4 2}}|{{seq 0 2 6}}|{{seq 6 -3 0}}':
    '1 2 3 4 5|1 0 -1 -2|2 3 4|4 3 2|0 2 4 6|6 3 0',
  '{{(split "-" .name)._0}} {{splitList "," "a,b"}} {{(splitn "-" 2 "a-b-c")._1}}': 'web [a b] b-c',
  '{{toStrings (list 1 "a" nil true)}} {{join "+" .list}} {{join "," 5}} {{sortAlpha .list}}':
    '[1 a true] b+a+b+ 5 [ a b b]',
  '{{until 3}} {{until -2}} {{untilStep 3 9 3}} {{untilStep 9 3 -4}} {{untilStep 1 5 -1}}':
    '[0 1 2] [0 -1] [3 6] [9 5] []',
  '{{add1 2}} {{add 1 .n "4"}} {{sub 5 "7"}} {{div 7 2}} {{div -7 2}} {{mod -7 3}} {{mul 2 3 .n}}':
    '3 8 -2 3 -3 -1 18',
  '{{max 1 "5" .n}} {{biggest 1 2}} {{min 3 .neg 1}} {{maxf 1 .n}} {{minf .neg 1}}':
    '5 2 -2 3.7 -2.5',
  '{{ceil .n}} {{floor .n}} {{floor .neg}} {{round .n 0}} {{round 3.14159 2}} {{round 3.49 0 0.4}} {{floor "x"}}':
    '4 3 -3 4 3.14 4 0',
  '{{randInt 5 6}}': '5',
  '{{default "d" .none}} {{default "d" .name}} {{default "d" 0}} {{empty .nothing}} {{empty .map}} {{coalesce .none "" "z"}}':
    'd web-1 d true false z',
  '{{all 1 "a"}} {{all 1 ""}} {{any 0 "a"}} {{any 0 ""}} {{ternary "y" "n" .yes}}':
    'true false true false y',
  '{{compact .list}} {{mustCompact (list 0 1 nil)}}': '[b a b] [1]',
  '{{(fromJSON .json).k}} {{(mustFromJSON .json).k | last}} {{fromJSON "no"}}':
    '[1 two] two <no value>',
  '{{toJSON .map}} {{toJSON .html}} {{mustToJSON .list}}':
    '{"a":1,"b":{"c":"deep"}} "\\u003ca href=\\"x\\"\\u003e\\u0026\'" ["b","a","b",""]',
  '{{toRawJSON .html}} {{mustToRawJSON .nothing}}': '"<a href=\\"x\\">&\'" null',
  '{{toPrettyJSON .other}}': '{\n  "a": 2\n}',
  '{{mustToPrettyJSON (list 1)}}': '[\n  1\n]',
  '{{typeOf .name}} {{typeOf .n}} {{typeOf 1}} {{typeOf .yes}} {{typeOf .list}} {{typeOf .map}} {{typeOf .nothing}}':
    'string float64 int bool []interface {} map[string]interface {} <nil>',
  '{{typeIs "string" .name}} {{typeIsLike "string" .name}} {{kindOf .map}} {{kindOf .list}} {{kindIs "slice" .list}} {{kindOf .n}}':
    'true true map slice true float64',
  '{{deepEqual .list .list}} {{deepEqual .map .other}} {{deepEqual 1 1.0}}': 'true false false',
  '{{base "/a/b.txt"}} {{dir "/a/b/"}} {{clean "/a/../b//c/"}} {{ext "a.tar.gz"}} {{isAbs "/a"}} {{base ""}} {{dir "a"}}':
    'b.txt /a/b /b/c .gz true . .',
  '{{osBase "/a/b"}} {{osDir "/a/b"}} {{osClean "a//b"}} {{osExt ".rc"}} {{osIsAbs "a"}}':
    'b /a a/b .rc false',
  '{{b64enc .text}} {{b64dec "aGk="}} {{b32enc "hi"}} {{b32dec "NBUQ===="}}':
    'SGVsbG8sIHfDtnJsZA== hi NBUQ==== hi',
  '{{b64dec "a!b"}} {{b32dec "a"}}':
    'illegal base64 data at input byte 1 illegal base32 data at input byte 0',
  '{{list 1 "a"}} {{tuple 1 2}} {{dict "k" 1 "l"}} {{get .map "a"}}{{get .map "x"}} {{hasKey .map "b"}}':
    '[1 a] [1 2] map[k:1 l:] 1 true',
  '{{$d := dict "a" 1}}{{$_ := set $d "b" 2}}{{$d}} {{$_ = unset $d "a"}}{{$d}}':
    'map[a:1 b:2] map[b:2]',
  '{{pluck "a" .map .other}} {{keys .other}} {{pick .map "a" "z"}} {{omit .map "b"}} {{values .other}}':
    '[1 2] [a] map[a:1] map[a:1] [2]',
  '{{dig "b" "c" "none" .map}} {{dig "b" "x" "none" .map}}': 'deep none',
  '{{append .nested 1}} {{push (list 1) 2}} {{mustAppend (list) 1}} {{mustPush (list) 2}} {{prepend (list 1) 0}} {{mustPrepend (list) 3}}':
    '[[1] [1] [2] 1] [1 2] [1] [2] [0 1] [3]',
  '{{first .list}} {{last .nested}} {{rest .nested}} {{initial .nested}} {{mustFirst .list}} {{mustLast .nested}} {{mustRest (list 1)}} {{mustInitial (list 1)}}':
    'b [2] [[1] [2]] [[1] [1]] b [2] [] []',
  '{{reverse .nested}} {{mustReverse (list 1 2)}} {{uniq .nested}} {{mustUniq (list 1 1)}} {{without .nested (index .nested 2)}} {{mustWithout (list 1 2) 1}}':
    '[[2] [1] [1]] [2 1] [[1] [2]] [1] [[1] [1]] [2]',
  '{{has "a" .list}} {{mustHas 4 .nested}} {{has 1 nil}} {{slice .nested 1 2}} {{mustSlice .nested 1}} {{concat .list (list 1)}}':
    'true false false [[1]] [[1] [2]] [b a b  1]',
  '{{chunk 2 (list 1 2 3)}} {{mustChunk 3 (list 1 2 3)}}': '[[1 2] [3]] [[1 2 3]]',
  '{{regexMatch "^w.b" .name}} {{mustRegexMatch "x$" .name}} {{regexMatch "(" .name}}':
    'true false false',
  '{{regexFind "[0-9]+" "a12b3"}} {{mustRegexFind "z" "a"}}| {{regexFindAll "[0-9]" "a1b2c3" 2}} {{mustRegexFindAll "[0-9]" "a1b2" -1}}':
    '12 | [1 2] [1 2]',
  '{{regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W"}} {{mustRegexReplaceAll "a(x*)b" "-axxb-" "$1W"}} {{regexReplaceAll "(?P<n>.)b" "ab" "${n}$$"}}':
    '-W-xxW- -- a$',
  '{{regexReplaceAllLiteral "a(x*)b" "-ab-" "${1}"}} {{mustRegexReplaceAllLiteral "b" "abc" "$"}}':
    '-${1}- a$c',
  '{{regexSplit "z+" "pizza" -1}} {{mustRegexSplit "z" "pizza" 2}} {{regexQuoteMeta "1.2*"}} {{regexReplaceAll "x*" "abc" "-"}}':
    '[pi a] [pi za] 1\\.2\\* -a-b-c-',
  '{{urlParse "https://ann:pw@e.x:8080/a%20b?q=1#f"}}':
    'map[fragment:f host:e.x:8080 hostname:e.x opaque: path:/a b query:q=1 scheme:https userinfo:ann:pw]',
  '{{urlJoin (dict "scheme" "https" "host" "e.x" "path" "/a b" "query" "q=1" "fragment" "f" "userinfo" "ann:pw")}}':
    'https://ann:pw@e.x/a%20b?q=1#f',
  '{{dateInZone "2006-01-02 15:04:05 MST" 1700000000 "UTC"}}': '2023-11-14 22:13:20 UTC',
  '{{dateInZone "Mon, 2 Jan 06 03:04:05.000 PM -0700" 1700000000 "Europe/Berlin"}}':
    'Tue, 14 Nov 23 11:13:20.000 PM +0100',
  '{{dateInZone "Monday January _2 3pm Z07:00 002" 1700000000 "America/New_York"}}':
    'Tuesday November 14 5pm -05:00 318',
  '{{htmlDateInZone 1700000000 "UTC"}} {{dateInZone "2006" 1700000000 "No/Where"}}':
    '2023-11-14 2023',
  '{{toDate "2006-01-02 15:04 -0700" "2023-11-14 23:13 +0100" | unixEpoch}} {{(mustToDate "2006-01-02T15:04:05Z07:00" "2023-11-14T22:13:20Z") | unixEpoch}}':
    '1699999980 1700000000',
  '{{toDate "2006-01-02 -07" "2023-11-14 +00" | dateModify "-90m" | unixEpoch}} {{toDate "2006 -07" "2023 +00" | mustDateModify "1h" | unixEpoch}}':
    '1699914600 1672534800',
  '{{duration "95"}} {{duration "3700"}} {{duration (add 86400 1)}} {{duration "x"}}':
    '1m35s 1h1m40s 24h0m1s 0s',
  '{{durationRound "2h10m5s"}} {{durationRound "49h"}} {{durationRound "800h"}} {{durationRound "1s"}} {{durationRound "90s"}}':
    '2h 2d 1mo 0s 1m',
  '{{if lt (now | unixEpoch | atoi) 1}}x{{else}}now{{end}} {{ago now}} {{len (htmlDate now)}} {{len (date "2006" now)}}':
    'now 0s 10 4',
  '{{html .html}} {{urlquery "a b&c"}} {{print "a" 1 2 "b"}}':
    '&lt;a href=&#34;x&#34;&gt;&amp;&#39; a+b%26c a1 2b',
  '{{js "<a=b>"}}': '\\u003Ca\\u003Db\\u003E',
};

/** Each of these fails, as in ntfy. */
const failing: readonly string[] = [
  '{{upper .n}}',
  '{{upper .none}}',
  '{{upper}}',
  '{{upper "a" "b"}}',
  '{{repeat 10001 "a"}}',
  '{{repeat 1000 "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"}}',
  '{{until 10001}}',
  '{{indent 101 "x"}}',
  '{{div 1 0}}',
  '{{mod 1 0}}',
  '{{first "abc"}}',
  '{{slice "abc" 1}}',
  '{{slice .list 3 9}}',
  '{{regexFind "(" "x"}}',
  '{{mustRegexMatch "(" "x"}}',
  '{{mustFromJSON "no"}}',
  '{{mustToDate "2006" "x"}}',
  '{{mustDateModify "x" now}}',
  '{{dateModify "1h" "x"}}',
  '{{ternary 1 2 "x"}}',
  '{{dig "a" .map}}',
  '{{randInt 5 5}}',
  '{{urlJoin (dict "host" 5)}}',
  '{{substr 4 2 "abcdef"}}',
  '{{get .list "a"}}',
  '{{chunk 1 "x"}}',
];

/** Functions of sprig that ntfy does not have. */
const unknown = [
  'env',
  'genPrivateKey',
  'toJson',
  'nospace',
  'abbrev',
  'int64',
  'uuidv4',
  'include',
];

export const templateFunctionCases: readonly NtfyCase[] = [
  ...(Object.entries(made).map(([template, expected]) => ({
    title: `template renders ${JSON.stringify(expected).slice(0, 40)} from ${template}`,
    async run(server) {
      const headers = { Template: 'yes', 'X-Message': `[${template.replaceAll('\n', '\\n')}]` };
      const body = JSON.stringify(data);
      const { message } = await publish(server, newTopic(), { headers, body });
      assert.equal(message, `[${expected}]`);
    },
  })) satisfies readonly NtfyCase[]),
  ...([...failing, ...unknown.map((name) => `{{${name} "x"}}`)].map((template) => ({
    title: `template fails: ${template.slice(0, 60)}`,
    async run(server) {
      const headers = { Template: 'yes', 'X-Message': template };
      const answer = await send(server, newTopic(), { headers, body: JSON.stringify(data) });
      const { code } = (await answer.json()) as { readonly code?: number };
      assert.ok(code === (failing.includes(template) ? 40045 : 40043), String(code));
    },
  })) satisfies readonly NtfyCase[]),
];

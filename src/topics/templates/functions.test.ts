import assert from 'node:assert/strict';
import { test } from 'node:test';
import { templateCosts } from './costs.ts';
import { templateFunctionNames } from './functions.ts';

test('each function of templates has a cost', () => {
  assert.deepEqual([...templateCosts.keys()].toSorted(), templateFunctionNames);
});

test('templates have exactly the functions of ntfy', () => {
  const ofGo = 'and eq ge gt html index js le len lt ne not or print printf println urlquery';
  const ofSprig = `
    add add1 adler32sum ago all any append atoi b32dec b32enc b64dec b64enc base biggest cat ceil
    chunk clean coalesce compact concat contains date dateInZone dateModify deepEqual default dict
    dig dir div duration durationRound empty ext fail first floor fromJSON get has hasKey
    hasPrefix hasSuffix htmlDate htmlDateInZone indent initial isAbs join keys kindIs kindOf last
    list lower max maxf min minf mod mul mustAppend mustChunk mustCompact mustDateModify mustFirst
    mustFromJSON mustHas mustInitial mustLast mustPrepend mustPush mustRegexFind mustRegexFindAll
    mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit mustRest
    mustReverse mustSlice mustToDate mustToJSON mustToPrettyJSON mustToRawJSON mustUniq
    mustWithout nindent now omit osBase osClean osDir osExt osIsAbs pick pluck plural prepend push
    quote randInt regexFind regexFindAll regexMatch regexQuoteMeta regexReplaceAll
    regexReplaceAllLiteral regexSplit repeat replace rest reverse round seq set sha1sum sha256sum
    sha512sum slice sortAlpha split splitList splitn squote sub substr ternary title toDate
    toDecimal toJSON toPrettyJSON toRawJSON toString toStrings trim trimAll trimPrefix trimSuffix
    trunc tuple typeIs typeIsLike typeOf uniq unixEpoch unset until untilStep upper urlJoin
    urlParse values without`;
  const names = `${ofGo} ${ofSprig}`.trim().split(/\s+/);
  assert.deepEqual(templateFunctionNames, names.toSorted());
});

-- KEYS: base, never. ARGV: ids. Returns the record of each job, or false.
-- @include "include/keys"
-- @include "include/batch"
return (readAll(recordPrefix, ARGV))

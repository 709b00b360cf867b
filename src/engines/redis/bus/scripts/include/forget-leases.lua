local function forgetLeases(leases, fences, stream)
  for _, member in ipairs(redis.call('ZRANGE', leases, 0, -1)) do
    if string.sub(member, 1, #stream + 1) == stream .. ' ' then
      redis.call('ZREM', leases, member)
      redis.call('HDEL', fences, member)
    end
  end
end

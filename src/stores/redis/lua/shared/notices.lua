-- What listeners are told once the script is done, in one message.

local notices = { queues = {}, cancels = {}, ended = {} }
-- Above this many, a notice says "some" and leaves the names out.
local maxNamed = 1000

local function publish()
  local told = {}
  if notices.anyQueue then
    told[1] = { kind = "jobs", queues = cjson.null }
  elseif next(notices.queues) then
    local queues = {}
    for queue in pairs(notices.queues) do queues[#queues + 1] = queue end
    told[1] = { kind = "jobs", queues = queues }
  end
  if #notices.cancels > 0 then told[#told + 1] = { kind = "cancel", ids = notices.cancels } end
  if #notices.ended > 0 then
    told[#told + 1] = { kind = "ended", ids = #notices.ended <= maxNamed and notices.ended or cjson.null }
  end
  if notices.schedules then told[#told + 1] = { kind = "schedules" } end
  if notices.configuration then told[#told + 1] = { kind = "queues" } end
  if #told > 0 then call("PUBLISH", P .. "notices", cjson.encode(told)) end
end

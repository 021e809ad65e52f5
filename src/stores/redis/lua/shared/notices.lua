-- What listeners receive once the script is done, in one message: JSON, then a line for each job that ended. Encoding those as JSON would take
-- the script longer than ending them.

local notices = { queues = {}, cancels = {}, ended = {} }
-- Above this many, a notice says "some" and leaves the names out.
local maxNamed = 1000

local function publish()
  local told = {}
  if notices.anyQueue then
    told[1] = { kind = "jobs", queues = cjson.null }
  elseif next(notices.queues) then
    local queues = {}
    for queue in pairs(notices.queues) do
      queues[#queues + 1] = queue
    end
    told[1] = { kind = "jobs", queues = queues }
  end
  if #notices.cancels > 0 then told[#told + 1] = { kind = "cancel", ids = notices.cancels } end
  local ended = ""
  if #notices.ended > maxNamed then
    told[#told + 1] = { kind = "ended", ids = cjson.null }
  elseif #notices.ended > 0 then
    ended = "\n" .. table.concat(notices.ended, "\n")
  end
  if notices.schedules then told[#told + 1] = { kind = "schedules" } end
  if notices.configuration then told[#told + 1] = { kind = "queues" } end
  if #told > 0 or ended ~= "" then call("PUBLISH", P .. "notices", (#told > 0 and cjson.encode(told) or "[]") .. ended) end
end

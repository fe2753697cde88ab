-- Forward auth for HAProxy: sends an auth request to Tollgate for each request, and returns its refusals to the client.
local URL = "http://127.0.0.1:8080/auth"
-- Headers of the client that are not sent to Tollgate: those of the connection, and those that this file sets.
local SKIPPED = {
    ["connection"] = true, ["content-length"] = true, ["host"] = true, ["transfer-encoding"] = true, ["upgrade"] = true,
    ["x-forwarded-for"] = true, ["x-forwarded-host"] = true, ["x-forwarded-method"] = true, ["x-forwarded-uri"] = true,
    ["x-tollgate-token"] = true,
}

local function values(headers)
    local list = {}
    for _, value in pairs(headers) do list[#list + 1] = value end
    return list
end

core.register_action("tollgate", { "http-req" }, function(txn)
    local headers = {}
    for name, sent in pairs(txn.http:req_get_headers()) do
        if not SKIPPED[name] then headers[name] = values(sent) end
    end
    headers["x-forwarded-for"] = { txn.f:src() }
    headers["x-forwarded-host"] = { txn.f:req_hdr("host") }
    headers["x-forwarded-method"] = { txn.f:method() }
    local uri = txn.f:pathq() -- empty for `GET http://host`
    headers["x-forwarded-uri"] = { (uri == nil or uri == "") and "/" or uri }
    local response = core.httpclient():get({ url = URL, headers = headers, timeout = 1000 })
    if response.status == 200 then return end
    local reply = txn:reply({ status = response.status, body = response.body })
    for name, sent in pairs(response.headers or {}) do
        for _, value in pairs(sent) do
            if name ~= "content-length" then reply:add_header(name, value) end
        end
    end
    txn:done(reply)
end)

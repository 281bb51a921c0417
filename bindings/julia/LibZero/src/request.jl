# Calls that wait for other ranks: begun, polled until they end, and given back whatever happens.

"Polls between which other tasks run; after these, sleeps lie between polls."
const POLLS_WITHOUT_SLEEP = 1000
const SLEEP_SECONDS = 0.001

"Lets other tasks run after the `polls`th look at something that is waited for."
let_others_run(polls) = polls < POLLS_WITHOUT_SLEEP ? yield() : sleep(SLEEP_SECONDS)

no_result(::Handle) = nothing

"""
Begins a call with `start(request)`, lets other tasks run until it has ended, throws its error, and returns what `take` gets out of it.

libzero reads and writes the caller's memory until the call has ended, also when the waiting task is interrupted. `start` holds all of it.
"""
function finish(start, take = no_result)
    request = Ref(Handle(C_NULL))
    ended = false
    GC.@preserve start try
        check(start(request))
        status = outcome(request[])
        ended = true
        check(status)
        return take(request[])
    finally
        if request[] != C_NULL
            ended ? zero_request_release(request[]) : abandon(request[], start)
        end
    end
end

"The status of an operation that has ended; waits for its end."
function outcome(request::Handle)
    done = Ref(Int64(0))
    for polls in Iterators.countfrom(1)
        status = ccall(entry(libzero.zero_request_test), Int32, (Handle, Ptr{Int64}), request, done)
        (status != ZERO_OK || done[] != 0) && return status
        let_others_run(polls)
    end
end

"What interrupted calls still read or write, by request."
const abandoned = Dict{Handle,Any}()
const abandoned_lock = ReentrantLock()

"Keeps what a call has borrowed until it ends by itself."
function abandon(request::Handle, borrowed)
    lock(() -> abandoned[request] = borrowed, abandoned_lock)
    @async begin
        outcome(request)
        zero_request_release(request)
        lock(() -> delete!(abandoned, request), abandoned_lock)
    end
    return nothing
end

# The parameters that optimizers train: `w`, which C sees as 20 x 30, and `b`.

struct Model{P,Q}
    optimizer::Optimizer
    rank::Int
    w::P
    b::Q
end

"An optimizer with its parameters, not sealed yet, for the length of `body(model)`."
function with_model(body, group, rank; T = Float32, options...)
    Optimizer(group; stage = 1, bucket_bytes = 1024, options...) do optimizer
        w = add_param!(optimizer, "w", T, (30, 20))
        b = add_param!(optimizer, "b", T, 7)
        body(Model(optimizer, rank, w, b))
    end
end

params(model) = (model.w, model.b)

function begin_model(model)
    for param in params(model)
        model.rank == 0 || break
        acquire(data -> copyto!(data, values_of(eltype(param), length(param), param.id)), model.optimizer, param)
    end
    begin!(model.optimizer, :root)
end

gradient(model, param, t) = values_of(eltype(param), length(param), 10t + 3param.id + model.rank)

function give_gradients(model, t)
    for param in (model.b, model.w)
        grad_acquire(model.optimizer, param) do data, accumulate
            values = reshape(gradient(model, param, t), size(param))
            accumulate ? data .+= values : copyto!(data, values)
        end
    end
end

"Hashes of the parameters, which rank 0 reads."
say_result(model) = say_slot.(Ref(model), params(model), :param)

function say_slot(model, param, slot)
    data = model.rank == 0 ? zeros(eltype(param), length(param)) : nothing
    read!(model.optimizer, param, slot, data)
    return isnothing(data) ? nothing : hash_of(data)
end

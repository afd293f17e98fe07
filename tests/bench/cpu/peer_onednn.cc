// oneDNN as its manual recommends for inference: it chooses layouts, and weights are brought into
// them beforehand.
#include "tests/bench/cpu/peer.h"

#include <dnnl.hpp>
#include <omp.h>

#include <unordered_map>

namespace prunerc::bench {
namespace {

using dnnl::memory;
using Format = memory::format_tag;
using Dims = memory::dims;

constexpr float kEpsilon = 1e-5F;

struct Session {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  memory wrap(const Dims& dims, Format format, const Data& data) {
    return {{dims, memory::data_type::f32, format}, engine, data.get()};
  }
  /// A copy of `from` in the layout that a primitive asks for.
  memory in_layout(memory from, const memory::desc& wanted) {
    if (from.get_desc() == wanted) return from;
    memory to(wanted, engine);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return to;
  }
};

memory::desc any(const Dims& dims) { return {dims, memory::data_type::f32, Format::any}; }
memory::desc plain(const Dims& dims, Format format) {
  return {dims, memory::data_type::f32, format};
}

Peer make_peer(std::shared_ptr<Session> session, dnnl::primitive primitive,
               std::unordered_map<int, memory> arguments, memory result, memory output) {
  Peer peer;
  peer.run = [session, primitive, arguments]() mutable {
    primitive.execute(session->stream, arguments);
    session->stream.wait();
  };
  peer.finish = [session, result, output]() mutable {
    if (result.get_desc() == output.get_desc()) return;
    dnnl::reorder(result, output).execute(session->stream, result, output);
    session->stream.wait();
  };
  return peer;
}

Peer make_matmul(std::shared_ptr<Session> session, const Case& which, Tensors& t) {
  const Dims a = {which.dims[0], which.dims[2]};
  const Dims b = {which.dims[2], which.dims[1]};
  const Dims c = {which.dims[0], which.dims[1]};
  const bool dense = which.kind == Kind::kDenseRelu;
  dnnl::primitive_attr attributes;
  dnnl::post_ops after;
  if (dense) after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
  attributes.set_post_ops(after);
  const memory::desc bias = plain({1, which.dims[1]}, Format::ab);
  const auto desc =
      dense ? dnnl::matmul::desc(plain(a, Format::ab), any(b), bias, plain(c, Format::ab))
            : dnnl::matmul::desc(plain(a, Format::ab), any(b), plain(c, Format::ab));
  const dnnl::matmul::primitive_desc chosen(desc, attributes, session->engine);
  memory output = session->wrap(c, Format::ab, t.output);
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, session->wrap(a, Format::ab, t.inputs[0])},
      {DNNL_ARG_WEIGHTS,
       session->in_layout(session->wrap(b, Format::ab, t.inputs[1]), chosen.weights_desc())},
      {DNNL_ARG_DST, output}};
  if (dense) arguments.emplace(DNNL_ARG_BIAS, memory(bias, session->engine, t.inputs[2].get()));
  return make_peer(session, dnnl::matmul(chosen), arguments, output, output);
}

Peer make_conv(std::shared_ptr<Session> session, const Case& which, Tensors& t) {
  const auto& [channels_in, channels_out, height, width, kernel, stride, pad] = which.dims;
  const bool depthwise = which.kind == Kind::kDepthwise;
  const int64_t out = which.out_size();
  const Dims source = {1, channels_in, height, width};
  const Dims weights = depthwise ? Dims{channels_in, 1, 1, kernel, kernel}
                                 : Dims{channels_out, channels_in, kernel, kernel};
  const Dims target = {1, channels_out, out, out};
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, any(source),
      any(weights), any(target), Dims{stride, stride}, Dims{pad, pad}, Dims{pad, pad});
  const dnnl::convolution_forward::primitive_desc chosen(desc, session->engine);
  const Format weight_format = depthwise ? Format::goihw : Format::oihw;
  memory result(chosen.dst_desc(), session->engine);
  const std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC,
       session->in_layout(session->wrap(source, Format::nchw, t.inputs[0]), chosen.src_desc())},
      {DNNL_ARG_WEIGHTS, session->in_layout(session->wrap(weights, weight_format, t.inputs[1]),
                                            chosen.weights_desc())},
      {DNNL_ARG_DST, result}};
  return make_peer(session, dnnl::convolution_forward(chosen), arguments, result,
                   session->wrap(target, Format::nchw, t.output));
}

Peer make_softmax(std::shared_ptr<Session> session, const Case& which, Tensors& t) {
  const Dims dims = {which.dims[0], which.dims[1]};
  const dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference,
                                         plain(dims, Format::ab), 1);
  const dnnl::softmax_forward::primitive_desc chosen(desc, session->engine);
  memory output = session->wrap(dims, Format::ab, t.output);
  return make_peer(
      session, dnnl::softmax_forward(chosen),
      {{DNNL_ARG_SRC, session->wrap(dims, Format::ab, t.inputs[0])}, {DNNL_ARG_DST, output}},
      output, output);
}

Peer make_layer_norm(std::shared_ptr<Session> session, const Case& which, Tensors& t) {
  const Dims dims = {which.dims[0], which.dims[1]};
  const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  const dnnl::layer_normalization_forward::desc desc(dnnl::prop_kind::forward_inference,
                                                     plain(dims, Format::ab), kEpsilon, flags);
  const dnnl::layer_normalization_forward::primitive_desc chosen(desc, session->engine);
  memory output = session->wrap(dims, Format::ab, t.output);
  return make_peer(session, dnnl::layer_normalization_forward(chosen),
                   {{DNNL_ARG_SRC, session->wrap(dims, Format::ab, t.inputs[0])},
                    {DNNL_ARG_SCALE, session->wrap({dims[1]}, Format::a, t.inputs[1])},
                    {DNNL_ARG_SHIFT, session->wrap({dims[1]}, Format::a, t.inputs[2])},
                    {DNNL_ARG_DST, output}},
                   output, output);
}

}  // namespace

std::optional<Peer> make_onednn(const Case& which, Tensors& tensors, int num_threads) {
  omp_set_num_threads(num_threads);
  auto session = std::make_shared<Session>();
  switch (which.kind) {
    case Kind::kGemm:
    case Kind::kDenseRelu: return make_matmul(session, which, tensors);
    case Kind::kConv:
    case Kind::kDepthwise: return make_conv(session, which, tensors);
    case Kind::kSoftmax: return make_softmax(session, which, tensors);
    case Kind::kLayerNorm: return make_layer_norm(session, which, tensors);
  }
  return std::nullopt;
}

}  // namespace prunerc::bench

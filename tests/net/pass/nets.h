// Nets of texts, what they compute, and which operators they call.
#ifndef PRUNERC_TESTS_NET_PASS_NETS_H_
#define PRUNERC_TESTS_NET_PASS_NETS_H_

#include "ir/interp/tensor.h"
#include "ir/net/net.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::testing {

/// The net of a text that is known to be good; fails the test otherwise.
net::Net net_or_die(const std::string& text);

/// The outputs for inputs and constants made of the seed, call by call.
std::vector<ir::Tensor> run_net(const net::Net& net, uint64_t seed);

/// "" if outputs agree up to rounding, else where they differ first.
std::string net_difference(const net::Net& a, const net::Net& b, uint64_t seed);

/// "conv_relu(x, W) -> y", one a line: results as they are named in the net.
std::string calls_of(const net::Net& net);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_NET_PASS_NETS_H_

/// @file Written by torch_vectors.py: results of PyTorch's CPU optimizers, for Lion of its authors'
/// formula in PyTorch. torch 2.15.0+cu132, CPU capability AVX512, with MKL's correctly rounded
/// square root (MKL_CBWR=AVX2 on an Intel processor). Other builds agree where theirs is correctly
/// rounded: torch_vectors.py says which. Hyper-parameters in the order of HyperParameters.
#pragma once

#include "kernels/kernels.h"

#include <cstdint>

namespace zero::kernels::torch {

inline constexpr int64_t kCount = 1003;
inline constexpr int64_t kSteps[] = {1, 2, 10};
inline constexpr int kShown = 8;

struct Vector {
  const char *algorithm;
  HyperParameters hyper;
  uint64_t seed;
  /// FNV-1a of the bytes, by kSteps and by slot (parameter, states); 0 where there is no slot.
  uint64_t hash[3][3];
  uint32_t param[kShown];  ///< bits of the first parameters after the last step
};

inline constexpr Vector kVectors[] = {
    // fused: the same bits
    {"sgd", {0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0}, 1000,
     {{0xb65105c020732661, 0x0000000000000000, 0x0000000000000000},
      {0xe35788a9230b9faa, 0x0000000000000000, 0x0000000000000000},
      {0x012d17d8804dfc99, 0x0000000000000000, 0x0000000000000000}},
     {0xbf0e6e60, 0x3d8c746f, 0x3ea89954, 0xbd1591d4, 0xbd6555bd, 0x3e7ccd5b, 0xbf62bd6c, 0x3d109fcb}},
    // fused: the same bits
    {"sgd", {0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.01, 0}, 1001,
     {{0x4beab79ffc587ebe, 0x0000000000000000, 0x0000000000000000},
      {0xde87443d372904c7, 0x0000000000000000, 0x0000000000000000},
      {0xc33f723297a6a7b0, 0x0000000000000000, 0x0000000000000000}},
     {0xbe843472, 0xbf02ccea, 0xbe94dd26, 0xbc762ce1, 0xbd1bdf33, 0x3e9e02cd, 0xbf139e49, 0xbd8b9ab0}},
    // fused: other bits
    {"sgd", {0.03, 0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0}, 1002,
     {{0x9f18263ad7132d04, 0x2a502d4e37e9f54c, 0x0000000000000000},
      {0xaba9f88c23b26985, 0x12abbc300a95f0e7, 0x0000000000000000},
      {0x3b0b85a30e1504dc, 0xd5ab1877c9d2382e, 0x0000000000000000}},
     {0x3edb2664, 0xbdc47b85, 0xbf5f4a90, 0x3df36f2b, 0x3e52791b, 0x3d655143, 0xbe51e977, 0x3c9db4f1}},
    // fused: other bits
    {"sgd", {0.03, 0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0005, 0}, 1003,
     {{0x9f0ab5e48ee2f7b3, 0x32e2c941bf1c7673, 0x0000000000000000},
      {0x0cbe42462e101051, 0x2cbedf6f5d7d0d82, 0x0000000000000000},
      {0xef0b8b063297a5e4, 0x7800f628beb035b1, 0x0000000000000000}},
     {0x3e34a645, 0xbd916049, 0x3d201bc1, 0xbf4d98e7, 0x3f03f455, 0x3e4643b3, 0x3d0ab18f, 0xbd8c0922}},
    // fused: other bits
    {"sgd", {0.03, 0.9, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0005, 0}, 1004,
     {{0x69ceb4cdf8f44ab2, 0x1cfe5a122376e1dd, 0x0000000000000000},
      {0x2b10f8cdf6f6675d, 0xdbc3752b634e7f70, 0x0000000000000000},
      {0x5d44d8ddbb9092c4, 0x40be413aade9a0db, 0x0000000000000000}},
     {0x3e16bcbc, 0x3c4b12da, 0x3d8d6a1c, 0xbe50104b, 0x3d6cae06, 0xbb3437f9, 0x3eb6f4a5, 0xbd63b785}},
    // fused: other bits
    {"sgd", {0.01, 0.95, 0.7, 0.0, 0.0, 0.0, 0.0, 0.0, 0}, 1005,
     {{0xd1461965a7712542, 0xd9bf2f9abf6a6ccc, 0x0000000000000000},
      {0x1b4b5b74e7aefb6d, 0xa22e4979f91868cc, 0x0000000000000000},
      {0xce67480474f5121d, 0x6cb881ed95d600e7, 0x0000000000000000}},
     {0x3ddd84b2, 0xbd76b513, 0xbdaa04df, 0x3f1554bc, 0xbe5c0006, 0x3ef6052e, 0xbcd68901, 0xbba6f356}},
    // fused: other bits
    {"sgd", {0.01, 0.9, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0}, 1006,
     {{0xe261638a88acccbc, 0x703b29019e95002d, 0x0000000000000000},
      {0xa871bf0ff2a9f867, 0x8283b607391c44b2, 0x0000000000000000},
      {0x0b50b3d3b0cd8cdb, 0xef5c04380ecfc65f, 0x0000000000000000}},
     {0xbd4953ed, 0xbdfa67f6, 0xbe8b3650, 0xbdc75b6d, 0x3d90a75e, 0xbdd06fc1, 0xbdb10009, 0xbdd063a5}},
    // fused: other bits
    {"sgd", {0.07, 0.8, 0.0, 1.0, 0.0, 0.0, 0.0, 0.02, 0}, 1007,
     {{0x49345ea06243931e, 0xd2461401cb1f0764, 0x0000000000000000},
      {0xd20afdcc29617d10, 0x88d01caa3f959965, 0x0000000000000000},
      {0x97d01e4f79000fc8, 0x82b50f2ed0cc42f4, 0x0000000000000000}},
     {0x3ec574fd, 0xbefa9121, 0xbde67a3c, 0xbeaa745e, 0xbc95070d, 0x3f07dde5, 0xbe964ed5, 0x3e98efba}},
    // fused: other bits
    {"adam", {0.001, 0.0, 0.0, 0.0, 0.9, 0.999, 1e-08, 0.01, 0}, 1008,
     {{0x32728f0715f39dd7, 0x3939b0bc3c0fb9b1, 0xe64c627c01fdcf2b},
      {0x7cb92290c2f00aca, 0xbaf9fc92198bb452, 0x42beec041a885029},
      {0x4115047111330164, 0x3e3d09a25d8dcd71, 0xa831a29051b8a896}},
     {0x3f5db8f1, 0xbde6c5e5, 0xbd957e15, 0x3eb5036d, 0x3ddefe1e, 0x3ee22dc9, 0xbe3b84e6, 0xbda1337a}},
    // fused: other bits
    {"adam", {0.001, 0.0, 0.0, 0.0, 0.9, 0.999, 1e-08, 0.0, 0}, 1009,
     {{0xf7ed3ecf505fff17, 0x85aa293a2b9c654a, 0x0e14d0823d263125},
      {0x7627ce10151ed457, 0x36e36377b544a38e, 0xac2c56bfac81de4f},
      {0x68f241146c06c480, 0x3ec6c3f9a0366a48, 0xfd9c51466d95cc4f}},
     {0x3d136e58, 0xbefa91f0, 0xbc955014, 0x3e29ff69, 0xbf5c00cf, 0x3d5a856c, 0x3ea417a3, 0x3ed87bff}},
    // fused: other bits
    {"adam", {0.0003, 0.0, 0.0, 0.0, 0.9, 0.95, 1e-08, 0.1, 0}, 1010,
     {{0xdbbca1cbc75af9b7, 0x8fdf10e468900ca2, 0xc951173d86c9a4f2},
      {0xc2932d91e73e7bf8, 0xb85608c66c298faf, 0x459b37d35658fa2f},
      {0x7f8e25acbd912e3a, 0x19722358bcb39b04, 0x7f9bd7f7ac9f4299}},
     {0xbe343f51, 0x3dcd6a33, 0xbd6fd9cb, 0x3e8bf93d, 0xbc66deb1, 0xbe9ef51d, 0xbe6d5b4b, 0x3de6c3aa}},
    // fused: other bits
    {"adam", {0.1, 0.0, 0.0, 0.0, 0.5, 0.9, 0.001, 0.3, 0}, 1011,
     {{0xfc73d2f13930c14d, 0x860164552ae1e5e2, 0x9486fd3753214f31},
      {0x853932ab251246eb, 0x6d737a32d7042b8b, 0x4fd0fbf10123c915},
      {0xadcccd5647b30506, 0xaf2e94d25948161f, 0xa2323174075c6f4f}},
     {0xbd24825b, 0xbd751722, 0x3c417614, 0x3df82a56, 0x3d306236, 0xbdbfa6c4, 0xbe74d230, 0x3e232f89}},
    // fused: other bits
    {"adam", {0.01, 0.0, 0.0, 0.0, 0.3, 0.99, 1e-06, 0.02, 0}, 1012,
     {{0x3f64222a6fdf1639, 0xc898548618c6faff, 0x46e4a10ef4056080},
      {0x7b4c7837a2537b60, 0x592b4274dfcd8704, 0x1958f24b6f478fc8},
      {0x67f115ad052bc39e, 0xa9c8b77e085faa72, 0xebb0aa4ebc307f3a}},
     {0xbf5ff49c, 0xbb538cb4, 0xbf369ab4, 0x3ecf78ef, 0x3ee23807, 0x3e4ab586, 0x3edfbdd8, 0x3dcb285e}},
    // fused: other bits
    {"adam", {0.01, 0.0, 0.0, 0.0, 0.0, 0.99, 1e-06, 0.0, 0}, 1013,
     {{0x44c3d918ea4d2654, 0xfacbacaa844af56e, 0x68c44d5470b298af},
      {0x2c6dc2d7459c469a, 0x0928895dae9b444b, 0x50a9bcbfeb1f3908},
      {0x5ce98b6b9bec7088, 0xe749c85d46f82fe0, 0xe1f17c4cdcb2b7eb}},
     {0xbf1bb1b7, 0xbd062013, 0xbe1fe727, 0x3dba5f53, 0xbe697e0d, 0xbe88c43a, 0x3d654330, 0xbe35a0c3}},
    // fused: the same bits
    {"adam", {0.01, 0.0, 0.0, 0.0, 0.51, 0.0, 1e-10, 0.05, 0}, 1014,
     {{0xddfabc2a1e497c3b, 0x791f7d31a3902099, 0xc3b4e1d36fc83e0a},
      {0x8043398f82e4d61e, 0x4189261de3ae879e, 0x2bfd27aa2ec68329},
      {0x4f3b0599a77c7efd, 0xc1621330c4cc6acd, 0xe1a4001aabad8132}},
     {0xbf2023a2, 0x3e870cae, 0xbee0ae4a, 0xc06e9d17, 0xbc661e66, 0x3e3016ab, 0xbecdaf50, 0x3dadd11f}},
    // fused: other bits
    {"adam", {0.007, 0.0, 0.0, 0.0, 0.99, 0.4, 0.0, 1.0, 0}, 1015,
     {{0x1a0bb2fe5ab71256, 0x6bbd2b7f080de7b4, 0x6221355333f44eca},
      {0x79d3a82d45813ed2, 0x85fbc7379919f50a, 0x551dad5f3bc9b67f},
      {0x86c2bf38229a3286, 0x7ab408f32977bf00, 0xbbf33b79b3524299}},
     {0x3d1c18bf, 0x3cc4a896, 0x3bce77fa, 0xbccd14e0, 0xbcf2b941, 0x3e2d81cb, 0x3e08dbb9, 0x3dabe25e}},
    // fused: other bits
    {"adamw", {0.001, 0.0, 0.0, 0.0, 0.9, 0.999, 1e-08, 0.01, 0}, 1016,
     {{0xc7d180e6ec5c6d67, 0xcec34d383202263c, 0xfc8cef2ceba1101a},
      {0xed0b7770f607ffe9, 0x629151d0bb7b21c6, 0xde9e5d7cab93dd76},
      {0x73f5aacb2fb09eb9, 0xdcf2cbc9ed06e2a0, 0xc4d0fc8009d04e82}},
     {0x3e479c01, 0xbc641297, 0xbdb2d162, 0xbd9ded05, 0x3e75c13c, 0x3f62c2aa, 0x3eb1c8dc, 0xbd59cd8c}},
    // fused: other bits
    {"adamw", {0.001, 0.0, 0.0, 0.0, 0.9, 0.999, 1e-08, 0.0, 0}, 1017,
     {{0x59e3077b2ea31cf8, 0xba036eb7bfad6ad6, 0xae9ed7a09ca2d41e},
      {0xbbd81bba3c827d1b, 0x08b4319bb730d86c, 0xdaf74299f95da2f8},
      {0x32d6333c1560d338, 0x94c7deb387cbd24e, 0xe8975926ded7f405}},
     {0xbd0bf907, 0x3dfb3c33, 0xbe06ff71, 0xbeb1f696, 0xbdf6f726, 0xbe7c1128, 0xbe730e47, 0x3f49013f}},
    // fused: other bits
    {"adamw", {0.0003, 0.0, 0.0, 0.0, 0.9, 0.95, 1e-08, 0.1, 0}, 1018,
     {{0x3ef5e368394482b7, 0x97595e010aa2f0a6, 0x4fca2120d7988ef8},
      {0x52445c17d2207c8b, 0xf2f40d99e7490bb2, 0xb609dd5d3ba763d5},
      {0xfab63900aa02ca71, 0xf035fd493c874da3, 0x2d52827349fb6056}},
     {0xbf0481de, 0x3ec0355c, 0x3d192eea, 0x3e7a85e8, 0xbefb0fb0, 0x3ce2141e, 0x3ec11647, 0x3e3a4188}},
    // fused: other bits
    {"adamw", {0.1, 0.0, 0.0, 0.0, 0.5, 0.9, 0.001, 0.3, 0}, 1019,
     {{0x570e4f2185d21fde, 0x488375bb3ea8974b, 0x9de1852c9dd54302},
      {0x040c8473a0139a94, 0x9333acbd05c0c902, 0x1328c63bc253a03e},
      {0x32844b48678f8eb8, 0x2666b3d5cbd1eafb, 0xea4b34873eb3d89c}},
     {0x3e93faf4, 0xbe6850f0, 0xbdac2382, 0x3e8cb3a8, 0xbda7988c, 0x3db3a48b, 0xbce4a1aa, 0xbd62ba2f}},
    // fused: other bits
    {"adamw", {0.01, 0.0, 0.0, 0.0, 0.3, 0.99, 1e-06, 0.02, 0}, 1020,
     {{0xc123c7facb6438a3, 0x73456e1fdd3e267c, 0x8e24ae56e800bb54},
      {0x0cdd91a62f3f53c0, 0xddf38b00b4bff2d7, 0x5dff0fa943e19793},
      {0x92e62bf1462f6a8e, 0x47c0f1d8ec8719ac, 0x3abebb18e56e9dae}},
     {0xbe0c335c, 0xbe551b71, 0x3de44044, 0x3ca45b02, 0xbcd8499f, 0x3d805939, 0xbdb9e8b9, 0xbe37d095}},
    // fused: other bits
    {"adamw", {0.01, 0.0, 0.0, 0.0, 0.0, 0.99, 1e-06, 0.0, 0}, 1021,
     {{0x0ad639efb7bd7ea0, 0xbf0d06516c194d37, 0x13472658e2ec59f2},
      {0xd6808b2dc4b9bc83, 0x97383df41d4b8367, 0x70eec6a71f1bf670},
      {0x013655a916a9d222, 0x2570befd6a9765bd, 0x05a5334a69ef2f7d}},
     {0x3cd10bfb, 0x3f43bb19, 0x3e09aac6, 0xbce2df77, 0x3dc22cf6, 0xbf3cec7d, 0xbd942358, 0x3f516da0}},
    // fused: the same bits
    {"adamw", {0.01, 0.0, 0.0, 0.0, 0.51, 0.0, 1e-10, 0.05, 0}, 1022,
     {{0xe360da10917fbbdb, 0x84781ef6ca946e1f, 0x57f844c2e8365253},
      {0x250cd8409e07441f, 0xd0a457732cfd7789, 0xbc3b532a8d4c8608},
      {0xd6eae42794b9a66d, 0xc7d95191b76d3238, 0x128db78736aef3e2}},
     {0xc081458a, 0xbfec592a, 0x408e2921, 0xc1342491, 0xc1bc4af0, 0x3f07b605, 0xbf61e1e1, 0x400017a7}},
    // fused: the same bits
    {"adamw", {0.007, 0.0, 0.0, 0.0, 0.99, 0.4, 0.0, 1.0, 0}, 1023,
     {{0x5b84b1fb2cc78705, 0x6bbfb49db57bfb19, 0x7c97b013eaf5336e},
      {0xccf55d583e0f92d2, 0xd6713d78ef3afd92, 0x321d92d0ce4bcd6d},
      {0x16898bc423af0a7d, 0xabba9fa937844af8, 0x644706ee8eae01f9}},
     {0x3d9780d7, 0x3ea41e2f, 0xbcca9050, 0x3d5283bd, 0x3daa0cac, 0xbd71a176, 0x3e01ca30, 0x3e30f3b1}},
    // fused: the same bits
    {"adagrad", {0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-10, 0.0, 0, 0, 0, 0}, 1024,
     {{0x3da8fdbd2f5c14d0, 0xdf1f5d46bbbec7eb, 0x0000000000000000},
      {0xc4e2118cd21c0e54, 0xde5eeb524b6fd752, 0x0000000000000000},
      {0x1255f050cfbfc79f, 0xa79f9c9bb58c99c2, 0x0000000000000000}},
     {0xbef098a0, 0x3e7fcb10, 0xbd94ac46, 0x3d99a6ef, 0xbe59f1a6, 0xbe01f5db, 0xbc772ff1, 0xbec5efa1}},
    // fused: the same bits
    {"adagrad", {0.01, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-10, 0.01, 0, 0, 0, 0}, 1025,
     {{0xef4c6fa26f435aba, 0xab4fa47ab9e3fc8f, 0x0000000000000000},
      {0x8cdcc446f96a7110, 0x646798c2add1cb52, 0x0000000000000000},
      {0xa793de3c72745c0d, 0xa47316fb5fb344f1, 0x0000000000000000}},
     {0x3dfc442d, 0xbc34d359, 0x3ed7f48f, 0xbeb9828e, 0x3d81d0b0, 0x3dd0cfbe, 0x3de382bc, 0x3e6a80d2}},
    // fused: the same bits
    {"adagrad", {0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-06, 0.0, 0, 0, 0.1, 0}, 1026,
     {{0xdd4f32dffc4f8122, 0xef481a632ae3afc6, 0x0000000000000000},
      {0x2bd852e4b02adbfe, 0x5227597383d5ce6a, 0x0000000000000000},
      {0x26015f4450db9024, 0x9512fb709983c86d, 0x0000000000000000}},
     {0x3ede70fb, 0xbe7381c3, 0xbe597534, 0x3dc9f3d8, 0x3f5075b2, 0x3eb74af0, 0xbe43d14e, 0xbf7b8e3a}},
    // fused: the same bits
    {"adagrad", {0.03, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0, 0, 0.001, 0.5}, 1027,
     {{0x65a828f06de8205d, 0xc3f41783cc5723ec, 0x0000000000000000},
      {0x4b56fb24aece45ea, 0xe9638f6917f31f01, 0x0000000000000000},
      {0x365679c472b63b1f, 0xf5cb448059dad137, 0x0000000000000000}},
     {0x3f69940f, 0x3f597e28, 0xbd86b357, 0xbcda6fb5, 0xbd34be74, 0xbdc0bf55, 0xbeddb308, 0xbdbb4d67}},
    // fused: the same bits
    {"lion", {0.0001, 0.0, 0.0, 0.0, 0.9, 0.99, 0.0, 0.0, 0}, 1028,
     {{0x362298c96a372967, 0xc590f8d34122eae8, 0x0000000000000000},
      {0x3f959c964b105af3, 0xa8ad4d009b6fbb31, 0x0000000000000000},
      {0x311f897a09a7a9e7, 0xc9e4eee0b9f722c3, 0x0000000000000000}},
     {0x3e471dd2, 0x3bbfcc40, 0x3d7e3ca0, 0x3d82b608, 0xbd257c24, 0xbd2ee420, 0x3e7b5584, 0xbde4cc7c}},
    // fused: the same bits
    {"lion", {0.001, 0.0, 0.0, 0.0, 0.95, 0.98, 0.0, 1.0, 0}, 1029,
     {{0x8f1b6755223b909c, 0x34c8a870aa08e572, 0x0000000000000000},
      {0x0323f4d2711374c8, 0x1ca4aef6c52f0d4b, 0x0000000000000000},
      {0x777943047b3cbe15, 0xe99131cb74266fde, 0x0000000000000000}},
     {0x3d5ac832, 0xbc77cb45, 0x3e37644a, 0xbef4f338, 0xbd15b4ad, 0xbdf295b5, 0x3dbd70b7, 0x3ebd4341}},
    // fused: the same bits
    {"lion", {0.1, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0, 0.01, 0}, 1030,
     {{0xae21592074110c5b, 0xc440c82f66df9b0c, 0x0000000000000000},
      {0x416e36dba8b66408, 0x7cd4f50931885c2e, 0x0000000000000000},
      {0x47a3d4013f6e61e0, 0xbaa488f4dcc34c7a, 0x0000000000000000}},
     {0xbca5a9d0, 0x3eb6e0a1, 0x3f168ec5, 0x3f202b1a, 0xbd5741f9, 0xbe87e64f, 0x3dc1c2ed, 0x3cef83ec}},
};

/// Algorithms on whole tensors, in float64: LAMB by its authors' formula, Muon by
/// torch.optim.Muon's code.
struct Float64Vector {
  const char *algorithm;
  HyperParameters hyper;
  uint64_t seed;
  int64_t rows;
  int64_t columns;
  double param[3][kShown];  ///< the first parameters, by kSteps
};

inline constexpr Float64Vector kFloat64Vectors[] = {
    {"lamb", {0.01, 0.0, 0.0, 0.0, 0.9, 0.999, 1e-06, 0.01, 0}, 2000, 17, 59,
     {{0x1.cb69d2b9d19c4p-5, -0x1.dcfc5b7f5779ap-4, -0x1.95880248ce3bap-1, -0x1.e4d98427d7138p-4, 0x1.c030736dd2eeap-5, 0x1.349625f0d313fp-5, -0x1.80ab938652a51p-3, -0x1.dcf734f75a198p-4},
      {0x1.e317248976accp-5, -0x1.ebc0e262ae3bfp-4, -0x1.93d035dd25d66p-1, -0x1.eef95e51f20d5p-4, 0x1.e78118c1b270dp-5, 0x1.170a4f95f97bep-5, -0x1.8808bd8d2cadep-3, -0x1.ea3fbd50c228dp-4},
      {0x1.cd9e6f31efa61p-6, -0x1.23a095cb11b58p-3, -0x1.83b0bdc018fe9p-1, -0x1.32fdfd9fefdbfp-3, 0x1.504b30339a322p-4, 0x1.a5d29f080f6efp-5, -0x1.ba6afc2f0cae2p-3, -0x1.a862974d7b4aep-4}}},
    {"lamb", {0.03, 0.0, 0.0, 0.0, 0.3, 0.9, 1e-08, 0.0, 0}, 2001, 1, 300,
     {{-0x1.fda3d118e634fp-1, 0x1.ddc119012ef86p-1, 0x1.8a772d8e2740bp-3, -0x1.d47ec37c4c5e6p-5, 0x1.c38dd4244bec7p-4, -0x1.e4270a585e981p-2, -0x1.217341e7fdb44p-4, 0x1.3fdc21bc22cf9p-2},
      {-0x1.004e7afcb14e0p+0, 0x1.e503328b7e931p-1, 0x1.9d4611d2a4c06p-3, -0x1.bbb81d492526fp-5, 0x1.8cf0c0cdbca9bp-4, -0x1.e5b61cd2bfadbp-2, -0x1.39c7b11157902p-4, 0x1.4e53e3a0cb202p-2},
      {-0x1.f81345f459226p-1, 0x1.e4e58dfc24354p-1, 0x1.c2752ca2c83c4p-3, -0x1.d53ba0ec7c803p-4, 0x1.68d6edc567a2ep-6, -0x1.05f7c9a552544p-1, -0x1.bfaade4754612p-4, 0x1.6ac36b827a578p-2}}},
    {"lamb", {0.001, 0.0, 0.0, 0.0, 0.9, 0.95, 0.001, 0.3, 0}, 2002, 40, 40,
     {{0x1.28b2c015bc79dp-6, -0x1.d5d4b6a0d2844p-3, 0x1.e9a6ae25c4cd4p-4, 0x1.5ccb65bdbf29ep-5, -0x1.8f8b6cf6fc8a5p-5, 0x1.8ce33b5899e70p-2, -0x1.afbf21a445539p-4, -0x1.f7e4844434537p-5},
      {0x1.2e8687de83b39p-6, -0x1.d4fce27aec9dap-3, 0x1.ea871a8e21d59p-4, 0x1.59b3de8238b40p-5, -0x1.8c10c95bb3f73p-5, 0x1.8c759be6f1ec1p-2, -0x1.b1c465f186511p-4, -0x1.f549ad6f07b3ap-5},
      {0x1.0adaa7732b8ebp-6, -0x1.cb0d6e6b53e16p-3, 0x1.e2c1376a7b96ap-4, 0x1.6060a996a0e45p-5, -0x1.a5bf194a82d6ap-5, 0x1.89ce9e880dba0p-2, -0x1.b7ada8fd7247cp-4, -0x1.e4bb55baac844p-5}}},
    {"muon", {0.01, 0.95, 0.0, 1.0, 0.0, 0.0, 1e-07, 0.1, 0}, 2003, 16, 16,
     {{-0x1.ed4998bc0e464p-2, -0x1.52e859a3d19d9p-6, 0x1.d2c93c44c1108p-12, -0x1.d7f3479cf2cd2p-2, -0x1.086751031ccbap-2, -0x1.76d70ab8b066ep-1, -0x1.7de6bc1048a0dp-3, 0x1.c9b0cba00dc57p-3},
      {-0x1.e96bd9b91778dp-2, -0x1.616f554261711p-6, -0x1.4c01b381d0ad2p-12, -0x1.da522bd3cd8fbp-2, -0x1.093690b7a22a6p-2, -0x1.76762ea50da84p-1, -0x1.7bab72701b0cdp-3, 0x1.c7e809bac65aap-3},
      {-0x1.d3112927a4855p-2, -0x1.7bb617a6e55b0p-6, 0x1.41954bc658e84p-8, -0x1.cd29aa819d7bap-2, -0x1.0ade40060ccf5p-2, -0x1.7517f7edd7ca2p-1, -0x1.5ecff6f5b52b1p-3, 0x1.bf75a200e7c33p-3}}},
    {"muon", {0.02, 0.9, 0.0, 0.0, 0.0, 0.0, 1e-07, 0.0, 0}, 2004, 8, 31,
     {{0x1.94b8f2df2fbf2p-1, 0x1.be14ae2489284p-1, 0x1.0d48e948f92fdp-4, 0x1.3ce26ee76a684p-1, -0x1.e615f52af00fbp-4, -0x1.9d68ebbbc594cp-5, 0x1.c6b56252e08dbp-5, 0x1.b5de0a635151dp-7},
      {0x1.93af863310d9bp-1, 0x1.bdc12b5ebbc2ap-1, 0x1.122c838c1d9ccp-4, 0x1.3efbf09b5474ep-1, -0x1.def9799930d8dp-4, -0x1.cd3eefdd7e172p-5, 0x1.bec8d6fe1066dp-5, 0x1.b6e5e97183d04p-7},
      {0x1.8f70cd77184bcp-1, 0x1.c557899ffde9ep-1, 0x1.a94e31b4ae1c8p-5, 0x1.411ba29b2c5ecp-1, -0x1.24e805ea216dbp-3, -0x1.2e77a5144bb43p-4, 0x1.6d77e43242e1fp-5, 0x1.1be7b59aa22e8p-6}}},
    {"muon", {0.001, 0.4, 0.0, 1.0, 0.0, 0.0, 1e-07, 1.0, 0}, 2005, 31, 8,
     {{0x1.06f212b50d84fp-2, 0x1.ae0ab555cd6dap-5, -0x1.40e16e4f1a8e4p-1, -0x1.411978a9c8cfdp-3, 0x1.22309c022142ap-1, -0x1.6c8bc69f7dd41p-2, -0x1.da38e6f3302adp-3, 0x1.abf3c732676c3p-4},
      {0x1.06b7ab47e0d6fp-2, 0x1.ace4b3e27f077p-5, -0x1.408bac130beebp-1, -0x1.3d534d24a371ep-3, 0x1.21e2f80ca9c7fp-1, -0x1.6c2c5f3468a9fp-2, -0x1.dadaa33846ab0p-3, 0x1.abb2b2bbca2eap-4},
      {0x1.05b9f8b3cbec0p-2, 0x1.a8c3e3a593e99p-5, -0x1.3f589b6b1e244p-1, -0x1.3bb5535809cc5p-3, 0x1.20fb366117cd7p-1, -0x1.68ef7d035b198p-2, -0x1.d62f3a564a83ap-3, 0x1.ab39e66af57efp-4}}},
};

}  // namespace zero::kernels::torch
